// Makes the calls of the npm package ngrok, and prints the result of each.
//
// `agent.mjs MODULES FOLDER`: MODULES is where the package is installed; the program `ngrok` in FOLDER is the agent. Each
// line of the output is the name of a call and its error, empty for none.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , modules, folder] = process.argv;
const ngrok = createRequire(modules)("ngrok");
const file = join(folder, "ngrok.yml");
const states = [];
let sandbox;
const options = {
  configPath: file,
  binPath: () => folder,
  onStatusChange: (state) => states.push(state),
  onLogEvent: (line) => (sandbox ??= /"sandbox started" url=(\S+)/.exec(line)?.[1]),
};

async function plantRequest(name) {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ tunnel_name: name });
  const answer = await fetch(`${sandbox}/_sandbox/agent/requests`, { method: "POST", headers, body });
  assert.equal(answer.status, 204);
}

const calls = {
  async connect() {
    assert.match(await ngrok.connect({ ...options, addr: 8000 }), /^https:/);
    assert.match(ngrok.getUrl(), /^http:\/\/127/);
  },
  async connectPort() {
    assert.match(await ngrok.connect(8001), /^https:/);
  },
  async connectTcp() {
    assert.match(await ngrok.connect({ ...options, proto: "tcp", addr: 22 }), /^tcp:/);
  },
  async connectTls() {
    assert.match(await ngrok.connect({ ...options, proto: "tls", addr: 443 }), /^tls:/);
  },
  async connectHttpOnly() {
    assert.match(await ngrok.connect({ ...options, addr: 8002, schemes: ["http"] }), /^http:/);
  },
  async connectByName() {
    assert.match(await ngrok.connect({ ...options, name: "ssh" }), /^tcp:/);
  },
  async connectWithModules() {
    const modules = {
      basic_auth: "user:password1",
      circuit_breaker: 0.5,
      host_header: "rewrite",
      inspect: false,
      metadata: "m",
      proxy_proto: "1",
      websocket_tcp_converter: true,
    };
    assert.match(await ngrok.connect({ ...options, addr: 8003, ...modules }), /^https:/);
  },
  async connectLabelled() {
    const labelled = { name: "labelled", addr: "8004", labels: ["service=shop"] };
    assert.deepEqual((await ngrok.getApi().startTunnel(labelled)).public_url, "");
    assert.equal(await ngrok.getApi().stopTunnel("labelled"), true);
  },
  async statusChange() {
    assert.deepEqual(states, ["connected"]);
  },
  async listTunnels() {
    const { tunnels, uri } = await ngrok.getApi().listTunnels();
    assert.equal(uri, "/api/tunnels");
    assert.equal(tunnels.length, 7);
    for (const tunnel of tunnels) assert.equal(tunnel.metrics.conns.gauge, 0);
  },
  async startTunnel() {
    const tunnel = await ngrok.getApi().startTunnel({ name: "first", proto: "http", addr: 9000 });
    assert.deepEqual(tunnel.config, { addr: "http://localhost:9000", inspect: true });
  },
  async startTunnelTwice() {
    const again = ngrok.getApi().startTunnel({ name: "first", proto: "http", addr: 9000 });
    await assert.rejects(again, (error) => error instanceof ngrok.NgrokClientError && error.body.error_code === 102);
  },
  async startTunnelInvalid() {
    const invalid = ngrok.getApi().startTunnel({ name: "x", proto: "gopher", addr: 9000 });
    await assert.rejects(invalid, (error) => /protocol name/.test(error.body.details.err));
  },
  async startTunnelBothSchemes() {
    const tunnel = await ngrok.getApi().startTunnel({ name: "both", proto: "http", addr: 9, schemes: ["http", "https"] });
    const urls = (await ngrok.getApi().listTunnels()).tunnels.map((found) => found.public_url);
    assert.ok(urls.includes(tunnel.public_url.replace("https:", "http:")));
  },
  async tunnelDetail() {
    assert.equal((await ngrok.getApi().tunnelDetail("first")).name, "first");
  },
  async listRequests() {
    await plantRequest("first");
    const { requests } = await ngrok.getApi().listRequests({ tunnel_name: "first", limit: 1 });
    assert.equal(requests[0].request.method, "GET");
    assert.deepEqual((await ngrok.getApi().listRequests({ tunnel_name: "none" })).requests, []);
  },
  async requestDetail() {
    const { requests } = await ngrok.getApi().listRequests();
    assert.deepEqual(await ngrok.getApi().requestDetail(requests[0].id), requests[0]);
  },
  async replayRequest() {
    const { requests } = await ngrok.getApi().listRequests();
    assert.equal(await ngrok.getApi().replayRequest(requests[0].id, "first"), true);
    assert.equal((await ngrok.getApi().listRequests()).requests.length, 2);
  },
  async replayRequestUnknown() {
    await assert.rejects(ngrok.getApi().replayRequest("0123456789abcdef", "first"), ngrok.NgrokClientError);
  },
  async deleteAllRequests() {
    assert.equal(await ngrok.getApi().deleteAllRequests(), true);
    assert.deepEqual((await ngrok.getApi().listRequests()).requests, []);
  },
  async stopTunnel() {
    assert.equal(await ngrok.getApi().stopTunnel("first"), true);
  },
  async disconnect() {
    const url = await ngrok.connect({ ...options, addr: 8005 });
    assert.equal(await ngrok.disconnect(url), true);
    await assert.rejects(ngrok.disconnect(url), /no tunnel/);
  },
  async disconnectAll() {
    await ngrok.disconnect();
    assert.deepEqual((await ngrok.getApi().listTunnels()).tunnels, []);
  },
  async kill() {
    await ngrok.kill();
    assert.equal(ngrok.getApi(), null);
  },
  async getVersion() {
    assert.match(await ngrok.getVersion(options), /^3\./);
  },
  async upgradeConfig() {
    writeFileSync(file, "web_addr: localhost:4041\n");
    await ngrok.upgradeConfig(options);
    assert.match(readFileSync(file, "utf8"), /version/);
  },
  async authtoken() {
    await ngrok.authtoken({ ...options, authtoken: "2aBcDeFgHiJk_t0ken" });
    assert.match(readFileSync(file, "utf8"), /authtoken: 2aBcDeFgHiJk_t0ken/);
  },
};

writeFileSync(file, 'version: "2"\ntunnels:\n  ssh: {proto: tcp, addr: 22}\n');
for (const [name, call] of Object.entries(calls)) {
  let problem = "";
  try {
    await call();
  } catch (error) {
    problem = error.stack;
  }
  console.log(JSON.stringify([name, problem]));
}
await ngrok.kill();

// Calls the TypeScript client for tests/clients: a JSON object per line on stdin, its result per line on stdout.
//
// {"base", "call", "parameters", "body"} calls the method `call`, such as `edges.edgesTcp.update`, with the parameters of
// its path. {} lists the methods, each with the HTTP method and path of its request.

import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const { Ngrok } = createRequire(process.argv[2])("@ngrok/ngrok-api");

const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** Copies with other keys, as a user of the client writes them. */
function camelKeys(value) {
  if (Array.isArray(value)) return value.map(camelKeys);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [camel(name), camelKeys(inner)]));
}

const connect = (base) => new Ngrok({ apiToken: "sandbox", baseUrl: base });

function* methods(folder, path = []) {
  for (const [name, value] of Object.entries(folder)) {
    if (value === null || typeof value !== "object" || name === "httpClient") continue;
    const prototype = Object.getPrototypeOf(value);
    if (prototype === Object.prototype) yield* methods(value, [...path, name]);
    else
      for (const method of Object.getOwnPropertyNames(prototype))
        if (method !== "constructor" && !method.startsWith("_")) yield [[...path, name, method].join("."), prototype];
  }
}

/** The request of a method, from its source: `GET /edges/tcp/{id}`. */
function request(name, prototype) {
  const method = name.split(".").at(-1);
  const source = (prototype._pagedList && method === "list" ? prototype._pagedList : prototype[method]).toString();
  const verb = /\.(get|post|put|patch|delete)\(/.exec(source)[1].toUpperCase();
  const path = /\.url\(`([^`]*)`/.exec(source)[1];
  const snake = (inside) => inside.replace("arg.", "").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return `${verb} ${path.replace(/\$\{([^}]*)\}/g, (_, inside) => `{${snake(inside)}}`)}`;
}

function call({ base, call, parameters, body }) {
  const [method, ...path] = call.split(".").reverse();
  const service = path.reverse().reduce((folder, name) => folder[name], connect(base));
  const values = Object.values(parameters);
  const [, signature] = /\(([^)]*)\)/.exec(service[method].toString());
  if (signature !== "arg") return service[method](...values);
  const fields = method === "replace" ? { module: body } : body;
  return service[method](camelKeys({ ...parameters, ...fields }));
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let answer;
  try {
    const found = asked.call
      ? await call(asked)
      : Object.fromEntries([...methods(connect("http://localhost"))].map(([name, of]) => [name, request(name, of)]));
    answer = { result: found ?? null };
  } catch (error) {
    answer = { error: error instanceof Error ? `${error.name}: ${error.message}` : JSON.stringify(error) };
  }
  console.log(JSON.stringify(answer));
}

(() => {
  // The entry points: rows are drawn when they are looked at, a part at a time.
  const source = document.getElementById("entry-data");
  if (!source) return;
  const { texts, groups, rows } = JSON.parse(source.textContent), step = 200;
  const [list, more, find, found] = ["entry-list", "more-entries", "find-entry", "entries-found"].map((id) => document.getElementById(id));
  const boxes = [...document.querySelectorAll("[data-entry]")], words = new Map();
  const changes = new Map([...document.querySelectorAll(".card[id] .address")].map((name) => [name.textContent, name.closest(".card").id]));
  let matching = [], drawn = 0;

  const [NAME, GROUP, WHO, PUBLIC, RESOURCES, UNKNOWN, LABELS, CHANGE] = [0, 1, 2, 3, 4, 5, 6, 7];
  const textsOf = (numbers) => numbers.map((number) => texts[number]);
  const isUnknown = (row) => row[UNKNOWN].length > 0;
  const tests = { changed: (row) => Boolean(row[CHANGE]), public: (row) => row[PUBLIC], unknown: isUnknown };
  function wordsOf(row) {
    if (!words.has(row)) {
      const [, verdict, details] = row[CHANGE] || ["", -1, []];
      words.set(row, [row[NAME], ...textsOf([row[WHO], ...row[RESOURCES], ...row[UNKNOWN], ...row[LABELS], ...details]),
        texts[verdict] || "", row[PUBLIC] ? "public" : ""].join(" ").toLowerCase());
    }
    return words.get(row);
  }

  function filter() {
    const wanted = find.value.toLowerCase().split(/\s+/).filter(Boolean), chosen = boxes.filter((box) => box.checked);
    matching = rows.filter((row) => chosen.every((box) => tests[box.dataset.entry](row)) &&
      wanted.every((word) => wordsOf(row).includes(word)));
    found.textContent = matching.length === rows.length ? `${rows.length} shown` : `${matching.length} of ${rows.length} shown`;
    drawn = 0;
    list.replaceChildren();
    if (!matching.length) list.append(make("p", "", "No entry point matches."));
    draw();
  }

  function make(tag, name, ...content) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...content);
    return made;
  }
  const badge = (text, level) => make("span", `badge ${level}`, text);

  function draw() {
    let group = list.querySelector(".rows:last-child"), host = "";
    for (const [number, row] of [...matching.entries()].slice(drawn, drawn + step)) {
      if (!group || !number || matching[number - 1][GROUP] !== row[GROUP]) {
        const size = matching.filter((other) => other[GROUP] === row[GROUP]).length;
        list.append(make("h3", "", groups[row[GROUP]], " ", make("span", "number", size)));
        list.append(group = make("div", "rows"));
        host = "";
      }
      const [line, ownHost] = drawRow(row, host);
      group.append(line);
      host = ownHost;
    }
    drawn = Math.min(drawn + step, matching.length);
    more.hidden = drawn >= matching.length;
    more.textContent = `show ${Math.min(step, matching.length - drawn)} more`;
  }

  // The host of the row above is faint, so that the paths of one host are read together.
  function drawRow(row, above) {
    const [, scheme, host, path] = /^([a-z]+:\/\/)([^/]*)(.*)$/s.exec(row[NAME]) || ["", "", row[NAME], ""];
    const line = make("details", "card entry"), summary = make("summary", ""), title = make("span", "title");
    const name = make("span", "address", make("span", "kind", scheme));
    name.append(make("span", host === above && path ? "kind" : "", host), path);
    title.append(name);
    if (row[CHANGE]) title.append(" ", badge(texts[row[CHANGE][1]], row[CHANGE][0]));
    if (row[PUBLIC]) title.append(" ", badge("public", "wanted"));
    for (const label of textsOf(row[LABELS])) title.append(" ", badge(label, ""));
    if (isUnknown(row)) title.append(" ", badge("in part unknown", ""));
    summary.append(title, make("span", "brief", texts[row[WHO]]));
    line.append(summary);
    line.addEventListener("toggle", () => { if (line.children.length < 2) line.append(describe(row)); });
    return [line, host];
  }

  function describe(row) {
    const inside = make("div", "inside");
    for (const text of textsOf(row[CHANGE] ? row[CHANGE][2] : [])) inside.append(make("p", "", text));
    add(inside, "Unknown", textsOf(row[UNKNOWN]));
    add(inside, "Decided by", textsOf(row[RESOURCES]));
    return inside;
  }
  function add(inside, heading, lines) {
    if (!lines.length) return;
    const line = make("p", "", make("b", "", `${heading}: `));
    lines.forEach((text, number) => {
      const link = changes.has(text) ? make("a", "", text) : text;
      if (link !== text) link.href = `#${changes.get(text)}`;
      line.append(number ? ", " : "", link);
    });
    inside.append(line);
  }

  const summaries = () => [...list.querySelectorAll("summary")];
  document.getElementById("entry-points").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], here = document.activeElement;
    if (!step || (here !== find && here.tagName !== "SUMMARY")) return;
    const next = here === find ? (step > 0 ? summaries()[0] : null) : summaries()[summaries().indexOf(here) + step] || (step < 0 ? find : null);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  find.addEventListener("input", filter);
  boxes.forEach((box) => box.addEventListener("change", filter));
  more.addEventListener("click", draw);
  filter();
})();

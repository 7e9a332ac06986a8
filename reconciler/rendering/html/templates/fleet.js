(() => {
  // The list of members of a fleet: rows are drawn when they are looked at, a part at a time.
  const source = document.getElementById("data");
  if (!source) return;
  const data = JSON.parse(source.textContent), body = document.getElementById("list"), more = document.getElementById("more");
  const find = document.getElementById("find"), found = document.getElementById("found"), step = 200;
  const choices = [...document.querySelectorAll("select[data-column]")];
  const columns = { state: 3, shape: 4, wave: 2, project: 1, reason: 5 }, words = new Map();
  let matching = [], drawn = 0;

  const reasonOf = (row) => {
    if (row[5] < 0) return "";
    const parts = row[6] ? [...row[6]] : [];
    return data.reasons[row[5]].replace(/…/g, () => parts.shift() ?? "…");
  };
  const labelsOf = (row) => data.labels[row[7]].map(([name, value]) => `${name}=${value}`);
  function wordsOf(row) {
    if (!words.has(row)) words.set(row, [row[0], ...labelsOf(row), reasonOf(row)].join(" ").toLowerCase());
    return words.get(row);
  }

  function fill(select, texts) {
    select.closest("label").hidden = texts.length < 2;
    texts.forEach((text, number) => select.add(new Option(text, select.dataset.column === "label" ? text : number)));
  }
  const short = (text) => text.length > 60 ? `${text.slice(0, 59)}…` : text;
  const values = { ...data, reasons: data.reasons.map(short), labels: data.choices };
  for (const select of choices) fill(select, values[`${select.dataset.column}s`]);

  function filter() {
    const wanted = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = choices.filter((select) => select.value !== "");
    const fits = (row) => chosen.every((select) => select.dataset.column === "label" ?
      labelsOf(row).includes(select.value) : row[columns[select.dataset.column]] === Number(select.value)) &&
      wanted.every((word) => wordsOf(row).includes(word));
    matching = data.rows.filter(fits);
    found.textContent = matching.length === data.rows.length ? `${matching.length} shown` : `${matching.length} of ${data.rows.length}`;
    drawn = 0;
    body.replaceChildren();
    draw();
  }

  function cell(content, head, name) {
    const made = document.createElement("td");
    if (name) made.className = name;
    if (head) made.dataset.head = head;
    made.append(content);
    return made;
  }
  function mark(state) {
    const made = document.createElement("span");
    made.className = `tag ${state}`;
    made.textContent = state;
    return made;
  }
  function toShape(number) {
    if (number < 0) return "";
    const made = document.createElement(document.getElementById(`s${number}`) ? "a" : "span");
    if (made.tagName === "A") made.href = `#s${number}`;
    const code = document.createElement("code");
    code.textContent = data.shapes[number];
    made.append(code);
    return made;
  }
  function draw() {
    const part = document.createDocumentFragment();
    for (const row of matching.slice(drawn, drawn + step)) {
      const line = document.createElement("tr"), name = document.createElement("b");
      name.textContent = row[0];
      const labels = labelsOf(row).join(" ");
      if (labels) line.title = labels;
      line.append(cell(name), cell(data.projects[row[1]], "project"), cell(data.waves[row[2]] || "", "wave"), cell(mark(data.states[row[3]]), "state"),
        cell(toShape(row[4]), "shape"), cell(reasonOf(row) || data.actions[row[8]] || ""), cell(String(row[9] || ""), "seconds", "number"),
        cell(String(row[10] || ""), "requests", "number"));
      part.append(line);
    }
    drawn = Math.min(drawn + step, matching.length);
    body.append(part);
    more.hidden = drawn >= matching.length;
    more.textContent = `show ${Math.min(step, matching.length - drawn)} more`;
  }

  // A button beside a shape or a reason shows its members.
  function show(column, value) {
    for (const select of choices) select.value = select.dataset.column === column ? value : "";
    find.value = "";
    filter();
    document.getElementById("tab-members").click();
    document.getElementById("members").scrollIntoView({ block: "start" });
  }
  for (const column of ["shape", "reason"])
    document.querySelectorAll(`button[data-${column}]`).forEach((button) =>
      button.addEventListener("click", () => show(column, button.dataset[column])));
  find.addEventListener("input", filter);
  choices.forEach((select) => select.addEventListener("change", filter));
  more.addEventListener("click", draw);
  filter();
})();

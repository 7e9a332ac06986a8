"use strict";
(() => {
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const one = (what, within = document) => within.querySelector(what);

  // --- tabs
  const tabs = all("[role=tab]"), panelOf = (tab) => one(`#${tab.getAttribute("aria-controls")}`), atFirst = new Map();
  function open(tab) {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      other.setAttribute("tabindex", other === tab ? "0" : "-1");
      panelOf(other).hidden = other !== tab;
    }
    const begin = atFirst.get(tab.id);
    atFirst.delete(tab.id);
    if (begin) begin();
  }
  const openTabOf = (element) => {
    const tab = tabs.find((candidate) => panelOf(candidate).contains(element));
    if (tab) open(tab);
  };
  if (tabs.length) {
    document.body.classList.add("has-tabs");
    one(".tabs").hidden = false;
    tabs.forEach((tab, number) => {
      tab.addEventListener("click", () => open(tab));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const next = tabs[(number + step + tabs.length) % tabs.length];
        open(next);
        next.focus();
      });
    });
    open(tabs[0]);
  }

  // --- copy
  all("[data-copy]").forEach((button) => button.addEventListener("click", async () => {
    const text = one(`#${button.dataset.copy}`);
    getSelection().selectAllChildren(text);
    try { await navigator.clipboard.writeText(text.textContent); button.textContent = "copied"; }
    catch { button.textContent = "selected"; } // the browser forbids it; the text can be copied by hand
  }));

  // --- search, filters and groups
  const cards = all(".card"), search = one("#search"), matches = one("#matches"), risky = one("#risky"), group = one("#group");
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const actions = new Set(all("input[data-action]:checked").map((box) => box.dataset.action));
    let count = 0;
    for (const card of cards) {
      const fits = actions.has(card.dataset.action) && (!risky || !risky.checked || card.dataset.risky) &&
        words.every((word) => card.dataset.words.includes(word));
      card.hidden = !fits;
      count += fits;
    }
    matches.textContent = count === cards.length ? `${count} shown` : `${count} of ${cards.length} shown`;
    one("#none").hidden = count > 0;
  }
  function regroup() {
    const groups = new Map();
    for (const card of cards) {
      const label = group.value ? card.dataset[group.value] || "other" : "";
      if (!groups.has(label)) groups.set(label, []);
      groups.get(label).push(card);
    }
    // Causes keep the order of the page: each group is where its first change is.
    const labels = [...groups.keys()];
    if (group.value === "kind" || group.value === "file") labels.sort();
    if (group.value === "cause") labels.sort((a, b) => causes.indexOf(a) - causes.indexOf(b));
    one("#groups").replaceChildren(...labels.map((label) => {
      const section = document.createElement("div"), rows = document.createElement("div");
      section.className = "group";
      rows.className = "rows";
      rows.append(...groups.get(label));
      if (label) {
        const title = document.createElement("h3"), number = document.createElement("span");
        number.className = "number";
        number.textContent = groups.get(label).length;
        title.append(label, " ", number);
        section.append(title);
      }
      section.append(rows);
      return section;
    }));
  }
  const causes = all(".group h3").map((title) => title.firstChild.textContent.trim());
  cards.sort((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1))); // the order of the plan, also if grouped by cause
  if (search) {
    search.addEventListener("input", filter);
    all("input[data-action], #risky").forEach((box) => box.addEventListener("change", filter));
    group.addEventListener("change", regroup);
    all("[data-fold]").forEach((button) => button.addEventListener("click", () =>
      cards.forEach((card) => { if (!card.hidden) card.open = button.dataset.fold === "open"; })));
    filter();
  }

  // --- `/` goes to the search of the open tab, or to the first one
  const fields = all("[role=tabpanel] input[type=search]");
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(input|textarea|select)$/i.test(event.target.tagName)) return;
    const field = fields.find((candidate) => candidate.checkVisibility()) || fields[0];
    if (!field) return;
    event.preventDefault();
    openTabOf(field);
    field.focus();
  });

  // --- a link expands its target, also if it is filtered out, collapsed or behind another tab
  function reveal() {
    const target = /^#[a-z]+\d*$/.test(location.hash) && one(location.hash);
    if (!target) return;
    openTabOf(target);
    if (!/^#[clrs]\d+$/.test(location.hash)) return;
    target.hidden = false;
    const fold = target.closest("details");
    if (fold) fold.open = true;
    target.scrollIntoView({ block: "nearest" });
  }
  addEventListener("hashchange", reveal);
  // A second click on the same link does not change the address.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (link && link.getAttribute("href") === location.hash) reveal();
  });

  // --- scroll charts to their right end, which is the latest
  all(".wide").forEach((wide) => { if (one(".chart", wide)) wide.scrollLeft = wide.scrollWidth; });

  // --- the graph
  const graph = one("#graph");
  if (!graph) return reveal();
  const scroll = one("#scroll"), panel = one("#panel");
  const boxes = all(".box", graph), arrows = all(".arrow", graph);
  const size = graph.viewBox.baseVal, whole = { x: 0, y: 0, width: size.width, height: size.height }, numberOf = (box) => box.id.slice(1);
  const place = (box) => ({ x: Number(box.dataset.x), y: Number(box.dataset.y) });
  let here = null, scale = 1;

  function zoom(to) {
    scale = Math.min(3, Math.max(0.05, to));
    graph.setAttribute("width", size.width * scale);
    graph.setAttribute("height", size.height * scale);
  }
  const across = () => Math.min(1, (scroll.clientWidth - 2) / size.width);
  const fit = () => zoom(Math.min(across(), (parseFloat(getComputedStyle(scroll).maxHeight) - 2) / size.height));
  const steps = { in: () => zoom(scale * 1.25), out: () => zoom(scale / 1.25), fit, one: () => zoom(1) };
  all("[data-zoom]").forEach((button) => button.addEventListener("click", steps[button.dataset.zoom]));
  scroll.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(scale * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
  }, { passive: false });
  // The size of the window is known only when the tab is open.
  atFirst.set("tab-dependencies", () => {
    if (size.width > scroll.clientWidth && size.width * 0.7 <= scroll.clientWidth) zoom(across());
  });

  // --- the filter: matching resources and their direct neighbors, placed anew
  const graphFilter = one("#graph-filter"), wide = 196, high = 44, margin = 16, gap = 64, rowGap = 12;
  const home = new Map(boxes.map((box) => [numberOf(box), place(box)]));
  const drawn = new Map(arrows.map((arrow) => [arrow, arrow.getAttribute("d")]));
  let focus = null; // the number of the only resource that matches

  function narrow() {
    const words = graphFilter.value.toLowerCase().split(/\s+/).filter(Boolean), isWhole = !words.length && focus === null;
    const matches = (box) => focus !== null ? numberOf(box) === focus :
      words.every((word) => box.getAttribute("aria-label").toLowerCase().includes(word));
    const matching = new Set(boxes.filter(matches).map(numberOf)), visible = new Set(matching), edges = [];
    for (const arrow of arrows) {
      const { from, to } = arrow.dataset, touches = matching.has(from) || matching.has(to);
      arrow.toggleAttribute("hidden", !touches);
      if (touches) { edges.push(arrow); visible.add(from).add(to); }
    }
    const places = isWhole ? home : arrange(visible, edges);
    for (const box of boxes) {
      const number = numberOf(box), { x, y } = places.get(number) || home.get(number), from = home.get(number);
      box.toggleAttribute("hidden", !visible.has(number));
      box.setAttribute("transform", `translate(${x - from.x} ${y - from.y})`);
      Object.assign(box.dataset, { x, y });
    }
    const columns = new Map();
    for (const { x, y } of places.values()) columns.set(x, [...(columns.get(x) || []), y]);
    const lefts = [...columns].sort((a, b) => a[0] - b[0]);
    for (const arrow of edges)
      arrow.setAttribute("d", isWhole ? drawn.get(arrow) : line(places.get(arrow.dataset.from), places.get(arrow.dataset.to), lefts));
    one("#graph-none").hidden = visible.size > 0;
    if (here && here.hasAttribute("hidden")) choose(null);
    if (isWhole || !visible.size) Object.assign(size, whole);
    else {
      size.width = Math.max(...[...places.values()].map((spot) => spot.x)) + wide + 3 * margin;
      size.height = Math.max(...[...places.values()].map((spot) => spot.y)) + high + margin;
    }
    const first = boxes.find((box) => matching.has(numberOf(box)));
    boxes.forEach((box) => box.setAttribute("tabindex", box === first ? "0" : "-1"));
    zoom(isWhole ? 1 : Math.max(0.7, Math.min(1, across())));
    scroll.scrollTo(0, 0);
  }

  // Columns from left to right, each resource right of those that it refers to; rows near their neighbors.
  function arrange(visible, edges) {
    const depth = new Map([...visible].map((number) => [number, 0])), deepest = 12; // a bound, for circular references
    for (let moved = true; moved;) {
      moved = false;
      for (const { dataset: { from, to } } of edges) {
        const next = depth.get(from) + 1;
        if (next > depth.get(to) && next <= deepest) { depth.set(to, next); moved = true; }
      }
    }
    const around = new Map([...visible].map((number) => [number, []])), columns = [];
    for (const { dataset: { from, to } } of edges) { around.get(from).push(to); around.get(to).push(from); }
    for (const number of [...visible].sort((a, b) => a - b)) (columns[depth.get(number)] ||= []).push(number);
    const filled = columns.filter(Boolean), rows = new Map();
    const settle = (column) => column.forEach((number, row) => rows.set(number, row - column.length / 2));
    const mean = (number) => around.get(number).reduce((sum, other) => sum + rows.get(other), 0) / (around.get(number).length || 1);
    filled.forEach(settle);
    for (let sweep = 0; sweep < 4; sweep++)
      for (const column of filled) {
        const wanted = new Map(column.map((number) => [number, mean(number)]));
        column.sort((a, b) => wanted.get(a) - wanted.get(b));
        settle(column);
      }
    const tallest = Math.max(0, ...filled.map((column) => column.length)), places = new Map();
    filled.forEach((column, left) => column.forEach((number, row) => places.set(number, {
      x: margin + left * (wide + gap),
      y: margin + (row + (tallest - column.length) / 2) * (high + rowGap),
    })));
    return places;
  }

  // From the right side of one box to the left side of another, between the boxes of the columns on the way.
  function line(start, end, columns) {
    const bend = (x, y, toX, toY) => `C${(x + toX) / 2} ${y} ${(x + toX) / 2} ${toY} ${toX} ${toY}`;
    const toY = end.y + high / 2, beside = rowGap / 2;
    let x = start.x + wide, y = start.y + high / 2, path = `M${x} ${y}`;
    if (end.x <= x) {
      const far = Math.max(x, end.x + wide) + 40;
      return `${path}C${far} ${y} ${far} ${toY} ${end.x + wide} ${toY}`;
    }
    for (const [left, tops] of columns) {
      if (left <= x || left >= end.x) continue;
      let free = y + (toY - y) * (left + wide / 2 - x) / (end.x - x);
      if (tops.some((top) => top - beside < free && free < top + high + beside)) {
        const straight = free;
        free = tops.flatMap((top) => [top - beside, top + high + beside])
          .reduce((best, height) => Math.abs(height - straight) < Math.abs(best - straight) ? height : best);
      }
      path += `${bend(x, y, left, free)}H${left + wide}`;
      [x, y] = [left + wide, free];
    }
    return path + bend(x, y, end.x, toY);
  }
  graphFilter.addEventListener("input", () => { focus = null; narrow(); });

  function choose(box) {
    here = box;
    graph.classList.toggle("chosen", Boolean(box));
    const near = new Set();
    for (const arrow of arrows) {
      const touches = box && [arrow.dataset.from, arrow.dataset.to].includes(numberOf(box));
      arrow.classList.toggle("near", Boolean(touches));
      if (touches) near.add(arrow.dataset.from).add(arrow.dataset.to);
    }
    for (const each of boxes) {
      each.classList.toggle("near", near.has(numberOf(each)));
      each.classList.toggle("here", each === box);
      each.setAttribute("aria-current", String(each === box));
    }
    panel.hidden = !box;
    panel.replaceChildren();
    if (box) describe(box, near);
  }

  function describe(box, near) {
    const shut = document.createElement("button");
    shut.type = "button";
    shut.className = "shut";
    shut.textContent = "close";
    shut.addEventListener("click", () => { choose(null); box.focus(); });
    const title = document.createElement("h3");
    title.textContent = box.getAttribute("aria-label");
    panel.append(shut, title);
    const card = /^#c\d+$/.test(box.getAttribute("href")) && one(box.getAttribute("href"));
    if (card) {
      panel.append(...[...one(".inside", card).childNodes].map((node) => node.cloneNode(true)));
    } else {
      const unchanged = document.createElement("p");
      unchanged.textContent = "It will not be changed.";
      panel.append(unchanged);
    }
    const number = numberOf(box), isWait = (arrow) => arrow.classList.contains("wait");
    const coming = arrows.filter((arrow) => arrow.dataset.to === number), going = arrows.filter((arrow) => arrow.dataset.from === number);
    list("Refers to", coming.filter((arrow) => !isWait(arrow)).map((arrow) => arrow.dataset.from));
    list("Runs after", coming.filter(isWait).map((arrow) => arrow.dataset.from));
    list("Referenced by", going.filter((arrow) => !isWait(arrow)).map((arrow) => arrow.dataset.to));
    list("Runs before", going.filter(isWait).map((arrow) => arrow.dataset.to));
    const only = document.createElement("button");
    only.type = "button";
    only.className = "only";
    only.textContent = focus === number ? "show all resources" : "show only this resource and its neighbors";
    only.addEventListener("click", () => {
      focus = focus === number ? null : number;
      graphFilter.value = "";
      narrow();
      go(box);
      choose(box);
    });
    panel.append(only);
    panel.scrollIntoView({ block: "nearest" });
  }

  function list(heading, numbers) {
    if (!numbers.length) return;
    const title = document.createElement("h4"), items = document.createElement("ul");
    title.textContent = heading;
    for (const number of numbers) {
      const other = one(`#b${number}`), item = document.createElement("li"), link = document.createElement("a");
      link.href = "#graph";
      link.textContent = other.getAttribute("aria-label");
      link.addEventListener("click", (event) => { event.preventDefault(); go(other); choose(other); });
      item.append(link);
      items.append(item);
    }
    panel.append(title, items);
  }

  function go(box) {
    boxes.forEach((each) => each.setAttribute("tabindex", each === box ? "0" : "-1"));
    box.focus({ preventScroll: true });
    const { x, y } = place(box);
    const left = (x - size.x) * scale, top = (y - size.y) * scale, margin = 60;
    if (left < scroll.scrollLeft + margin || left + 200 * scale > scroll.scrollLeft + scroll.clientWidth - margin)
      scroll.scrollLeft = left - scroll.clientWidth / 3;
    if (top < scroll.scrollTop + margin || top + 44 * scale > scroll.scrollTop + scroll.clientHeight - margin)
      scroll.scrollTop = top - scroll.clientHeight / 3;
  }

  // The nearest box in a direction; distance across that direction counts three times.
  function toward(box, key) {
    const from = place(box), [along, across, sign] =
      { ArrowRight: ["x", "y", 1], ArrowLeft: ["x", "y", -1], ArrowDown: ["y", "x", 1], ArrowUp: ["y", "x", -1] }[key];
    let best = null, least = Infinity;
    for (const candidate of boxes) {
      if (candidate.hasAttribute("hidden")) continue;
      const to = place(candidate), ahead = (to[along] - from[along]) * sign;
      if (ahead <= 0) continue;
      const distance = ahead + 3 * Math.abs(to[across] - from[across]);
      if (distance < least) { least = distance; best = candidate; }
    }
    return best;
  }

  boxes.forEach((box, number) => {
    box.setAttribute("tabindex", number === 0 ? "0" : "-1");
    box.addEventListener("click", (event) => { event.preventDefault(); go(box); choose(here === box ? null : box); });
  });
  graph.addEventListener("keydown", (event) => {
    const box = event.target.closest && event.target.closest(".box");
    if (!box) return;
    if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      const next = toward(box, event.key);
      if (next) go(next);
    } else if (event.key === " ") {
      event.preventDefault();
      choose(here === box ? null : box);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && here) { const box = here; choose(null); box.focus(); }
  });
  reveal();
})();

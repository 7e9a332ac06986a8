"use strict";
(() => {
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const one = (what, within = document) => within.querySelector(what);

  // --- search and filters
  const cards = all(".card"), search = one("#search"), matches = one("#matches"), risky = one("#risky");
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
  if (search) {
    search.addEventListener("input", filter);
    all("input[data-action], #risky").forEach((box) => box.addEventListener("change", filter));
    all("[data-fold]").forEach((button) => button.addEventListener("click", () =>
      cards.forEach((card) => { if (!card.hidden) card.open = button.dataset.fold === "open"; })));
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(input|textarea)$/i.test(event.target.tagName)) { event.preventDefault(); search.focus(); }
    });
    filter();
  }

  // --- a link expands its target, also if it is filtered out or collapsed
  function reveal() {
    const target = /^#[clr]\d+$/.test(location.hash) && one(location.hash);
    if (!target) return;
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
  reveal();

  // --- scroll charts to their right end, which is the latest
  all(".wide").forEach((wide) => { if (one(".chart", wide)) wide.scrollLeft = wide.scrollWidth; });

  // --- the graph
  const graph = one("#graph");
  if (!graph) return;
  const scroll = one("#scroll"), panel = one("#panel");
  const boxes = all(".box", graph), arrows = all(".arrow", graph);
  const size = graph.viewBox.baseVal, numberOf = (box) => box.id.slice(1);
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
  if (size.width > scroll.clientWidth && size.width * 0.7 <= scroll.clientWidth) zoom(across());

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
    const left = x * scale, top = y * scale, margin = 60;
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
})();

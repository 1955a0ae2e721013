// -- cards: one a category, a few at first, all on demand, any by search ------------------------
const FIRST = 24, MORE = 96, FOUND = 60;
const sections = [
  { node: $("novel"), novel: true, limit: FIRST },
  { node: $("known"), novel: false, limit: FIRST },
];
let lowerIds = null; // made at the first search: most readers never need it

function wordsOf() { return $("filter").value.toLowerCase().split(/\s+/).filter(Boolean); }

function matchingRows(words) {
  if (words.length === 0) return [];
  lowerIds ??= rows.id.map((id) => id.toLowerCase());
  const found = [];
  for (let row = 0; row < total; row += 1) if (words.every((w) => lowerIds[row].includes(w))) found.push(row);
  return found;
}

function drawCards() {
  const words = wordsOf(), found = matchingRows(words);
  const hits = new Map();
  found.forEach((row) => hits.set(world.of[row], (hits.get(world.of[row]) ?? 0) + 1));
  const named = (c) => words.every((w) => `${c.title} ${c.name} ${c.suggested.join(" ")}`.toLowerCase().includes(w));
  const all = listed(), most = Math.max(...all.map((c) => c.count), 1);
  let matches = 0;
  for (const part of sections) {
    // A new category that the method itself gave up, and that holds nothing, is none.
    const own = bySize(all.filter((c) => c.novel === part.novel && (c.count > 0 || !(c.novel && c.inactive))));
    const fitting = words.length ? own.filter((c) => named(c) || hits.has(c.id)) : own;
    matches += fitting.length;
    const list = fitting.slice(0, part.limit);
    part.node.querySelector(".cards").replaceChildren(...list.map((c) => card(c, most, words.length ? hits.get(c.id) : 0)));
    const left = fitting.length - list.length, more = part.node.querySelector(".more");
    more.hidden = left <= 0;
    more.textContent = `Show ${Math.min(left, MORE)} more of ${number(left)}`;
    const used = own.filter((c) => c.count > 0).length;
    part.node.querySelector("h2 span").textContent = used === own.length ? number(used) : `${number(used)} of ${number(own.length)} in use`;
    part.node.hidden = own.length === 0 || (words.length > 0 && fitting.length === 0);
  }
  drawFound(words, found);
  $("matches").textContent = words.length ? `${number(matches)} ${matches === 1 ? "category" : "categories"}, ${images(found.length)}` : "";
}

function drawFound(words, found) {
  const part = $("found");
  part.hidden = found.length === 0;
  if (found.length === 0) return;
  part.querySelector("h2 span").textContent = images(found.length);
  part.querySelector(".pictures").replaceChildren(...found.slice(0, FOUND).map((row, at) => thumb(row, () => openPicture(found, at))));
  const more = part.querySelector(".more");
  more.hidden = found.length <= FOUND;
  more.textContent = `Show all ${number(found.length)}`;
  more.onclick = () => openGallery({ title: `Files like “${words.join(" ")}”`, rows: found });
}

function card(c, most, hits) {
  const look = c.rows.slice(0, c.novel ? 12 : 8); // the gallery begins with the exemplars
  const open = () => openGallery(c.id);
  const node = make("article", { class: `card ${c.novel ? "novel" : "known"}${c.count ? "" : " empty"}`, id: `category-${c.id}`, "data-id": c.id });
  const heading = make("h3", {}, c.count ? make("button", { type: "button", class: "open", text: c.title, on: { click: open } }) : c.title);
  if (c.guess) heading.append(make("small", { text: ` ${c.name}` }));
  node.append(make("header", {}, heading, make("p", { class: "count" },
    make("strong", { text: number(c.count) }), make("span", { text: c.count ? ` ${percent(c.count / Math.max(data.samples, 1))}` : " none seen" }))));
  const bar = make("i");
  bar.style.width = `${(100 * c.count) / most}%`;
  node.append(make("div", { class: "bar", "aria-hidden": "true" }, bar));
  const chips = c.guess ? c.suggested.filter((word) => word !== c.good).slice(0, 3) : [];
  if (c.guess) node.append(chipRow(c, chips));
  if (hits) node.append(make("p", { class: "hits", text: `${images(hits)} found here` }));
  if (look.length) node.append(make("div", { class: "pictures" }, ...look.map((row, at) => thumb(row, () => openPicture(c.rows, at)))));
  const rest = unsure(c.rows.slice(look.length), 6);
  if (rest.length) {
    node.append(make("div", { class: "unsure" }, make("p", { text: "Least typical, most doubtful" }),
      make("div", { class: "pictures" }, ...rest.map((row, at) => thumb(row, () => openPicture(rest, at))))));
  }
  node.append(cardFoot(c, open));
  return node;
}

function chipRow(c, others) {
  const use = (name, text) => make("button", {
    type: "button", class: "chip", text, title: `Name this category “${name}”`,
    on: { click: () => giveName(c.id, name) },
  });
  return make("p", { class: "chips" }, use(c.good, "✓ yes"), ...(others.length ? [make("span", { text: "or" })] : []), ...others.map((name) => use(name, name)));
}

function cardFoot(c, open) {
  const facts = [`id ${c.id}`];
  if (c.inactive) facts.push("too few confident images");
  const link = (text, run) => make("button", { type: "button", class: "link", text, on: { click: run } });
  const links = [link("hide", () => hideCategory(c.id))];
  // A known class keeps its name and stays: others are merged into it.
  if (c.novel) links.unshift(link("rename", () => renameCategory(c.id)), link("merge", () => mergeCategory(c.id)));
  if (onMap(c.id)) links.push(link("map", () => { highlight(c.id); $("map").scrollIntoView(); }));
  if (c.count) links.unshift(link(c.count === 1 ? "open" : `all ${number(c.count)}`, open));
  return make("footer", {}, make("span", { text: facts.join(" · ") }), make("span", { class: "links" }, ...links));
}

function startCards() {
  for (const part of sections) {
    part.node.querySelector(".more").addEventListener("click", () => { part.limit += MORE; drawCards(); });
  }
  let waiting = 0;
  $("filter").addEventListener("input", () => {
    sections.forEach((part) => { part.limit = FIRST; });
    clearTimeout(waiting);
    waiting = setTimeout(() => { drawQuestions(); drawCards(); }, total > 5000 ? 150 : 40);
  });
  $("review").addEventListener("click", () => openGallery({ title: "Most doubtful images", rows: ORDERS.doubt([...rows.id.keys()]).slice(0, 400) }, "doubt"));
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !typing && !document.querySelector("dialog[open]")) { $("filter").focus(); event.preventDefault(); }
  });
}

// -- levels: categories put together, or parts of one; of the same run, nested -------------------
const GROUPS = 12;
const level = { name: null, limit: GROUPS };

const offered = () => (data.levels?.offered ?? []).filter((l) => l.groups.length > 0);

// What the reader has merged here counts as one.
function members(group) {
  const own = group.categories.map((id) => { let c = category(id); while (c && c.into !== null) c = category(c.into); return c; });
  return bySize([...new Set(own.filter((c) => c && !c.hidden))]);
}

function rowsOfGroup(group, own) {
  if (group.parts.length === 0) return own.flatMap((c) => c.rows);
  const parts = new Set(group.parts);
  return own.flatMap((c) => c.rows).filter((row) => parts.has(rows.fine?.[row]));
}

// Those with a name first, then the largest: as the run's files name them, with guesses as questions.
function titleOf(group, own) {
  // What the category was suggested need not fit to a part of it.
  if (group.parts.length) return `${own[0].name}.${group.name.slice(group.name.lastIndexOf(".") + 1)}`;
  const names = [...new Set([...own.filter((c) => !c.guess), ...own.filter((c) => c.guess)].map((c) => c.title))].slice(0, 3);
  return names.join(", ") + (own.length > names.length ? ` and ${number(own.length - names.length)} more` : "");
}

function groupCard(group) {
  const own = members(group), list = rowsOfGroup(group, own);
  if (list.length === 0) return null;
  const part = group.parts.length > 0, title = titleOf(group, own);
  const count = part ? group.count : own.reduce((sum, c) => sum + c.count, 0);
  const open = () => openGallery({ title, rows: list });
  const node = make("article", { class: `card ${own.every((c) => c.novel) ? "novel" : own.some((c) => c.novel) ? "mixed" : "known"}` });
  node.append(make("header", {}, make("h3", {}, make("button", { type: "button", class: "open", text: title, on: { click: open } })), make("p", { class: "count" }, make("strong", { text: number(count) }))));
  // A few of each member, so that what was put together is seen.
  const each = Math.max(1, Math.ceil(10 / own.length));
  const look = (part ? list : own.flatMap((c) => c.rows.slice(0, each))).slice(0, 10);
  node.append(make("div", { class: "pictures" }, ...look.map((row) => thumb(row, () => openPicture(list, list.indexOf(row))))));
  if (!part) node.append(make("p", { class: "members" }, ...own.map((c) => make("button", { type: "button", class: "link", text: `${c.title} ${number(c.count)}`, on: { click: () => openGallery(c.id) } }))));
  return node;
}

function drawLevels() {
  const levels = offered(), node = $("levels"), now = levels.find((l) => l.name === level.name);
  node.hidden = !now || wordsOf().length > 0;
  if (!now) return;
  const found = data.levels.found;
  node.querySelector("h2 span").textContent = [...levels.map((l) => [l.count, l.name]), [found, "found"]].sort((a, b) => a[0] - b[0]).map(([n, name]) => `${number(n)} ${/^\d+$/.test(name) ? "asked for" : name}`).join(" · ");
  node.querySelectorAll(".toggle button").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.level === level.name)));
  const cards = bySizeOfGroup(now.groups).map(groupCard).filter(Boolean), left = cards.length - level.limit;
  const alone = now.count - now.groups.length;
  const what = now.groups.some((g) => g.parts.length) ? `are parts of ${data.groups ? "one that was found" : "a category"}` : `hold several ${data.groups ? "of those found" : "categories"}`;
  $("levels-said").textContent = `${number(now.count)} ${now.name === "coarse" || now.name === "fine" ? `${now.name} ` : ""}groups: below, those that ${what}${alone > 0 ? `; the other ${number(alone)} ${alone === 1 ? "is as found" : "are as found"}` : ""}.`;
  node.querySelector(".cards").replaceChildren(...cards.slice(0, level.limit));
  const more = node.querySelector(".more");
  more.hidden = left <= 0;
  more.textContent = `Show ${Math.min(left, MORE)} more of ${number(left)}`;
}

const bySizeOfGroup = (groups) => [...groups].sort((a, b) => (a.parts.length && b.parts.length ? a.categories[0] - b.categories[0] : 0) || b.count - a.count || a.id - b.id);

function startLevels() {
  const levels = offered(), node = $("levels");
  if (levels.length === 0) return;
  level.name = levels[0].name;
  node.querySelector(".toggle").hidden = levels.length < 2;
  const text = (l) => (/^\d+$/.test(l.name) ? `${l.name} groups` : l.name[0].toUpperCase() + l.name.slice(1));
  node.querySelector(".toggle").replaceChildren(...levels.map((l) => make("button", {
    type: "button", "data-level": l.name, text: text(l),
    on: { click: () => { level.name = l.name; level.limit = GROUPS; drawLevels(); } },
  })));
  node.querySelector(".more").addEventListener("click", () => { level.limit += MORE; drawLevels(); });
  // Who asked for a level wants to see it first.
  if (data.levels.asked === level.name) $("novel").before(node);
}

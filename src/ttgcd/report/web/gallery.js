// -- the gallery: all images of a category, or of a search, in one order ------------------------
const CHUNK = 240; // pictures made at once; more as the reader scrolls
const shown = { of: null, list: [], drawn: 0, chosen: new Set(), picking: false, last: null };

const endOfGrid = new IntersectionObserver((entries) => {
  if (entries.some((entry) => entry.isIntersecting)) drawMore();
}, { rootMargin: "600px" });

// `of` is a category id, or { title, rows } for a list of its own.
function openGallery(of, order = "typical") {
  Object.assign(shown, { of, chosen: new Set(), picking: false, last: null });
  $("order").value = order;
  drawGallery();
  if (!$("gallery").open) $("gallery").showModal();
  $("gallery-scroll").scrollTop = 0;
  $("grid").querySelector(".thumb")?.focus({ preventScroll: true });
}

const isDoubtful = (row) => rows.doubt[row] > 0.9;
const isCategory = () => typeof shown.of === "number";

function drawGallery() {
  const own = isCategory() ? category(shown.of) : null;
  const list = own ? own.rows : shown.of.rows;
  shown.list = ORDERS[$("order").value](list);
  $("gallery-title").textContent = own ? own.title : shown.of.title;
  const facts = [own && own.guess ? own.name : null, images(own ? own.count : list.length)];
  if (own && own.count > list.length) facts.push(`${number(list.length)} shown`);
  if (list.some(isDoubtful)) facts.push("underlined: doubtful");
  $("gallery-facts").textContent = facts.filter(Boolean).join(" · ");
  for (const id of ["rename", "merge"]) $(id).hidden = !own?.novel;
  $("hide").hidden = !own;
  $("grid").replaceChildren();
  shown.last = null;
  shown.drawn = 0;
  drawMore();
  drawPicking();
}

function drawMore() {
  if (shown.drawn >= shown.list.length) return;
  const next = shown.list.slice(shown.drawn, shown.drawn + CHUNK);
  const first = shown.drawn;
  $("grid").append(...next.map((row, i) => {
    const node = thumb(row, (_row, event) => (shown.picking ? pick(first + i, event.shiftKey) : openPicture(shown.list, first + i)));
    node.setAttribute("aria-pressed", String(shown.chosen.has(row)));
    if (isDoubtful(row)) node.classList.add("doubtful");
    return node;
  }));
  shown.drawn += next.length;
  if (shown.drawn < shown.list.length) {
    endOfGrid.unobserve($("grid-end")); // asked again, or it would stay silent while in view
    endOfGrid.observe($("grid-end"));
  }
}

// Pick one image, or with the shift key all from the last one picked to this one.
function pick(at, range) {
  const row = shown.list[at];
  if (range && shown.last !== null) {
    const [low, high] = [Math.min(shown.last, at), Math.max(shown.last, at)];
    shown.list.slice(low, high + 1).filter((r) => !shown.chosen.has(r)).forEach(toggle);
  } else toggle(row);
  shown.last = at;
}

function toggle(row) {
  if (!shown.chosen.delete(row)) shown.chosen.add(row);
  shown.picking = true;
  for (const node of $("grid").querySelectorAll(`[data-row="${row}"]`)) node.setAttribute("aria-pressed", String(shown.chosen.has(row)));
  drawPicking();
}

function drawPicking() {
  $("pick").setAttribute("aria-pressed", String(shown.picking));
  $("move").hidden = shown.chosen.size === 0;
  $("split").hidden = $("move").hidden || !isCategory();
  $("move").textContent = `Move ${images(shown.chosen.size)} to …`;
  $("grid").classList.toggle("picking", shown.picking);
}

function startGallery() {
  const dialog = $("gallery");
  $("order").addEventListener("change", () => { drawGallery(); $("gallery-scroll").scrollTop = 0; });
  $("gallery-close").addEventListener("click", () => dialog.close());
  $("rename").addEventListener("click", () => renameCategory(shown.of));
  $("merge").addEventListener("click", async () => { if (await mergeCategory(shown.of)) dialog.close(); });
  $("hide").addEventListener("click", () => { hideCategory(shown.of); dialog.close(); });
  $("pick").addEventListener("click", () => {
    shown.picking = !shown.picking;
    if (!shown.picking) shown.chosen.clear();
    drawGallery();
  });
  $("move").addEventListener("click", async () => {
    if (await moveRows([...shown.chosen])) { shown.chosen.clear(); shown.picking = false; drawGallery(); }
  });
  $("split").addEventListener("click", async () => {
    if (await splitRows(shown.of, [...shown.chosen])) { shown.chosen.clear(); shown.picking = false; drawGallery(); }
  });
  $("grid").addEventListener("keydown", gridKeys);
  endOfGrid.observe($("grid-end"));
}

// Arrows walk over the pictures, x picks one.
function gridKeys(event) {
  const nodes = [...$("grid").children], at = nodes.indexOf(document.activeElement);
  if (at < 0) return;
  const across = nodes.findIndex((node) => node.offsetTop > nodes[0].offsetTop);
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across < 0 ? nodes.length : across, ArrowUp: across < 0 ? -nodes.length : -across }[event.key];
  if (step !== undefined) {
    nodes[Math.min(Math.max(at + step, 0), nodes.length - 1)].focus();
    event.preventDefault();
  } else if (event.key === "x") toggle(Number(nodes[at].dataset.row));
}

// -- one picture, large -------------------------------------------------------------------------
const large = { list: [], at: 0 };

function openPicture(list, at) {
  Object.assign(large, { list, at });
  drawPicture();
  if (!$("picture").open) $("picture").showModal();
}

function drawPicture() {
  const row = large.list[large.at], href = originalOf(row), c = category(world.of[row]);
  const stage = $("stage");
  const small = make("div", { class: "small" });
  if (havePictures && !missing.has(row)) place(small, row);
  stage.replaceChildren(small);
  $("original").hidden = href === null;
  if (href !== null) {
    $("original").href = href;
    const full = make("img", { alt: rows.id[row], on: {
      load: () => { if (large.list[large.at] === row) stage.replaceChildren(full); },
      error: () => { if (large.list[large.at] === row) $("picture-note").textContent = "The original is not where it was: this is its small picture."; },
    } });
    full.src = href;
  }
  $("picture-note").textContent = "";
  $("picture-name").textContent = rows.id[row];
  $("picture-facts").textContent = `${c.title}${c.guess ? ` (${c.name})` : ""} · ${fit(row)} · doubt ${percent(rows.doubt[row])} · ${large.at + 1} of ${number(large.list.length)}`;
  $("previous").disabled = large.at === 0;
  $("next").disabled = large.at === large.list.length - 1;
}

function turn(by) {
  large.at = Math.min(Math.max(large.at + by, 0), large.list.length - 1);
  drawPicture();
}

function startPicture() {
  const dialog = $("picture");
  $("previous").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  $("picture-close").addEventListener("click", () => dialog.close());
  $("picture-move").addEventListener("click", async () => {
    const row = large.list[large.at];
    if (await moveRows([row])) { drawPicture(); if ($("gallery").open) drawGallery(); }
  });
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) { turn(by); event.preventDefault(); }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}

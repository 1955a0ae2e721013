// -- edits: what the user changes here, replayed over the run; kept by the browser until downloaded
const UNNAMED = /^(novel|group) \d+$/;
const STORE = `ttgcd-edits-${data.run}`;
const world = { categories: new Map(), of: [] };
let edits = [], undone = [];

function readStored() {
  try {
    const found = JSON.parse(localStorage.getItem(STORE));
    return found && found.format === "ttgcd.edits/1" && Array.isArray(found.edits) ? found.edits : [];
  } catch { return []; } // no storage, or not ours
}

function store() {
  try {
    if (edits.length) localStorage.setItem(STORE, JSON.stringify(asFile()));
    else localStorage.removeItem(STORE);
  } catch { /* private window: the edits live as long as the page */ }
}

const asFile = () => ({ format: "ttgcd.edits/1", edits });

// The world after all edits, from the run's own answers.
function replay() {
  world.of = rows.category.slice();
  world.categories = new Map(data.categories.map((c) => [c.id, { ...c, into: c.merged ?? null, rows: [] }]));
  const rowOf = edits.some((e) => e.images) ? new Map(rows.id.map((id, row) => [id, row])) : null;
  for (const edit of edits) {
    const own = world.categories.get(edit.category), into = world.categories.get(edit.into);
    if (edit.op === "rename" && own) own.name = String(edit.name);
    else if (edit.op === "split" && own) {
      const id = splitId(edits.indexOf(edit));
      world.categories.set(id, { id, name: edit.name ?? `split ${id - FIRST_SPLIT_ID}`, novel: true, count: 0, suggested: [], good: null, inactive: false, hidden: false, into: null, rows: [] });
      moveTo(world.categories.get(id), edit.images, rowOf);
    }
    else if (edit.op === "hide" && own) own.hidden = true;
    else if (edit.op === "merge" && own && into && own !== into) {
      world.of.forEach((c, row) => { if (c === own.id) world.of[row] = into.id; });
      into.count += own.count;
      own.count = 0;
      own.into = into.id;
    } else if (edit.op === "move" && into) moveTo(into, edit.images, rowOf);
  }
  world.of.forEach((c, row) => world.categories.get(c)?.rows.push(row));
  for (const c of world.categories.values()) {
    c.guess = c.novel && UNNAMED.test(c.name) && Boolean(c.good);
    c.title = c.guess ? `${c.good}?` : c.name;
  }
}

function moveTo(into, ids, rowOf) {
  for (const id of ids) {
    const row = rowOf.get(id), from = world.categories.get(world.of[row]);
    if (!from || from === into) continue;
    from.count -= 1;
    into.count += 1;
    world.of[row] = into.id;
  }
}

// A category that is split off gets its id from the edit's place in the run's log.
const FIRST_SPLIT_ID = 1_000_000;
const splitId = (at) => FIRST_SPLIT_ID + data.logged + at + 1;

// Take one edit out: the ids of categories split off by later ones move up with their places.
function dropEdit(at) {
  const gone = splitId(at), shift = (id) => (id > gone ? id - 1 : id);
  edits = edits.filter((_, i) => i !== at).map((e, i) => (i < at ? e : {
    ...e, ...("category" in e ? { category: shift(e.category) } : {}), ...("into" in e ? { into: shift(e.into) } : {}),
  }));
  undone = [];
}

const category = (id) => world.categories.get(id);
const listed = () => [...world.categories.values()].filter((c) => c.into === null && !c.hidden);
const bySize = (list) => list.sort((a, b) => b.count - a.count || a.id - b.id);

function addEdit(edit, said) {
  edits.push(edit);
  undone = [];
  changed(said);
}

function changed(said) {
  store();
  replay();
  drawAll();
  $("said").textContent = said;
}

const describe = (edit) => ({
  rename: () => `${edit.category}: name “${edit.name}”`,
  merge: () => `${edit.category} merged into ${edit.into}`,
  move: () => `${images(edit.images.length)} moved to ${edit.into}`,
  hide: () => `${edit.category} hidden`,
  split: () => `${images(edit.images.length)} split off ${edit.category}`,
}[edit.op] ?? (() => edit.op))();

function undo() {
  const last = edits.pop();
  if (!last) return;
  undone.push(last);
  changed(`Undone: ${describe(last)}`);
}

function redo() {
  const next = undone.pop();
  if (!next) return;
  edits.push(next);
  changed(`Done again: ${describe(next)}`);
}

function download() {
  const blob = new Blob([JSON.stringify(asFile(), null, 1), "\n"], { type: "application/json" });
  const link = make("a", { href: URL.createObjectURL(blob), download: `${data.out}-edits.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  $("said").textContent = "Downloaded.";
}

function drawEditBar() {
  $("edits").hidden = edits.length === 0 && undone.length === 0;
  $("edit-count").textContent = `${edits.length} ${edits.length === 1 ? "edit" : "edits"}`;
  $("undo").disabled = edits.length === 0;
  $("redo").disabled = undone.length === 0;
  $("download").disabled = edits.length === 0;
  $("edit-log").replaceChildren(...edits.map((e) => make("li", { text: describe(e) })));
  const hidden = [...world.categories.values()].filter((c) => c.hidden && c.into === null && edits.some((e) => e.op === "hide" && e.category === c.id));
  $("hidden-note").replaceChildren(...hidden.map((c) => make("button", {
    type: "button", class: "chip", text: `Show ${c.title} again`,
    on: { click: () => { dropEdit(edits.findIndex((e) => e.op === "hide" && e.category === c.id)); changed("Shown again."); } },
  })));
}

function startEdits() {
  edits = readStored();
  $("undo").addEventListener("click", undo);
  $("redo").addEventListener("click", redo);
  $("download").addEventListener("click", download);
  $("edit-command").textContent = `ttgcd edit ${data.out} apply ${data.out}-edits.json`;
}

// -- asking: one small dialog for a name or a category ----------------------------------------
function ask(question, { value = "", choices = null, hint = "", plain = false } = {}) {
  const dialog = $("ask"), field = $("ask-field");
  field.hidden = plain;
  $("ask-label").textContent = question;
  $("ask-hint").textContent = hint;
  $("ask-choices").replaceChildren(...(choices ?? []).map((text) => make("option", { value: text })));
  field.value = value;
  dialog.returnValue = "";
  dialog.showModal();
  field.select();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => answer(dialog.returnValue === "ok" ? field.value.trim().replace(/\s+/g, " ") : ""), { once: true });
  });
}

const choiceOf = (c) => `${c.title} #${c.id}`;

// A category by "title #id", by its title alone, or by its number.
async function askCategory(question, except) {
  const all = bySize(listed().filter((c) => c.id !== except));
  const given = await ask(question, { choices: all.map(choiceOf), hint: "Begin to type a name; choose from the list." });
  if (!given) return null;
  const id = /#(\d+)$/.exec(given)?.[1] ?? /^\d+$/.exec(given)?.[0];
  const found = id !== undefined ? all.find((c) => c.id === Number(id)) : all.find((c) => [c.title, c.name].some((t) => t.toLowerCase() === given.toLowerCase()));
  if (!found) $("said").textContent = `No category “${given}”: nothing was changed.`;
  return found ?? null;
}

const withName = (name, except) => [...world.categories.values()].find((c) => c.id !== except && c.into === null && c.name.toLowerCase() === name.toLowerCase());

// Names are unique: two categories of one name are one category, if the user says so.
async function giveName(id, name) {
  const other = withName(name, id);
  if (!other) {
    addEdit({ op: "rename", category: id, name }, `Named “${name}”.`);
  } else if (await ask(`There is a category “${other.name}” already. Merge the two?`, { value: "yes", plain: true })) {
    addEdit({ op: "merge", category: id, into: other.id }, `Merged into ${other.title}.`);
    if ($("gallery").open && shown.of === id) openGallery(other.id);
  }
}

async function renameCategory(id) {
  const c = category(id);
  const hint = c.suggested.length ? `Suggested: ${c.suggested.join(", ")}` : "";
  const name = await ask("Name of this category", { value: c.guess ? c.good : c.name, choices: c.suggested, hint });
  if (name && name !== c.name) await giveName(id, name);
}

// Picked images as a category of their own.
async function splitRows(id, chosen) {
  const name = await ask(`Name of the new ${data.groups ? "group" : "category"} of ${images(chosen.length)}`, { hint: "Its images leave this category." });
  if (!name) return false;
  const other = withName(name, null);
  if (other) {
    addEdit({ op: "move", images: chosen.map((row) => rows.id[row]), into: other.id }, `There is a category “${other.name}” already: ${images(chosen.length)} moved to it.`);
  } else addEdit({ op: "split", category: id, images: chosen.map((row) => rows.id[row]), name }, `“${name}” split off.`);
  return true;
}

async function mergeCategory(id) {
  const into = await askCategory(`Merge ${category(id).title} into`, id);
  if (!into) return false;
  addEdit({ op: "merge", category: id, into: into.id }, `Merged into ${into.title}.`);
  return true;
}

function hideCategory(id) {
  addEdit({ op: "hide", category: id }, `${category(id).title} is hidden; bring it back at the foot of the page.`);
}

async function moveRows(chosen) {
  const into = await askCategory(`Move ${images(chosen.length)} to`, null);
  if (!into) return false;
  addEdit({ op: "move", images: chosen.map((row) => rows.id[row]), into: into.id }, `${images(chosen.length)} moved to ${into.title}.`);
  return true;
}

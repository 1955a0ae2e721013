// -- begin --------------------------------------------------------------------------------------
function drawAll() {
  redrawMap();
  drawQuestions();
  drawCards();
  drawLevels();
  drawCharts();
  drawEditBar();
  if ($("gallery").open) drawGallery();
}

startSheets();
startEdits();
startGallery();
startPicture();
startCards();
startLevels();
startQuestions();
startMap();
replay();
drawAll();

let resizing = 0, lastWidth = window.innerWidth;
const redraw = () => { drawCharts(); redrawMap(); };
window.addEventListener("resize", () => {
  if (window.innerWidth === lastWidth) return; // phones resize when the address bar hides
  lastWidth = window.innerWidth;
  clearTimeout(resizing);
  resizing = setTimeout(redraw, 120);
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
// Paper does not scroll: what is not yet drawn is drawn now.
window.addEventListener("beforeprint", () => {
  if (havePictures) document.querySelectorAll(".thumb:not(.words)").forEach((node) => place(node, Number(node.dataset.row)));
});

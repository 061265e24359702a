#include "trace/export/page_text.hpp"

namespace troupe {

const char* const kPageTables = R"HTML(function facts() {
  document.title = data.run + " \u2013 Troupe trace";
  $("title").textContent = data.run;
  const steps = data.steps.map(s => s[0]);
  $("subtitle").textContent = (steps.length ? "steps " + steps[0] + (steps.length > 1 ? "\u2013" +
    steps[steps.length - 1] : "") + ", " : "") + time(length) + (data.missing ? " \u2013 " +
    data.missing : "");
  const lengths = data.steps.map(s => s[2] - s[1]).sort((a, b) => a - b);
  const all = [["messages", data.arrows.length.toLocaleString("en")],
    ["pieces of work", slices.filter(s => s.kind !== "message").length.toLocaleString("en")],
    ["devices", data.lanes.filter(l => l.path[l.path.length - 1] === "work").length]];
  if (lengths.length) all.unshift(["a step, median", time(lengths[lengths.length >> 1])]);
  if (data.unhandled) all.push(["without an arrow", data.unhandled]);
  for (const [name, value] of all) {
    const box = document.createElement("div"), b = document.createElement("b");
    b.textContent = value; box.className = "fact soft"; box.append(b, name); b.style.color =
      "var(--ink)"; $("facts").append(box);
  }
  for (const kind of kinds) {
    if (kind === "message" || !slices.some(s => s.kind === kind)) continue;
    const key = document.createElement("span"), i = document.createElement("i");
    key.className = "key"; i.style.background = "var(--" + kind + ")";
    key.append(i, { F: "F forward", B: "B backward", W: "W weight gradients" }[kind] || kind);
    $("keys").append(key);
  }
}
function table() {
  const columns = data.bubble.length ? Object.keys(data.bubble[0]) : [];
  const shares = new Set(["busy", "other", "waiting", "bubble"]), head = $("bubble").insertRow();
  for (const c of columns) {
    const th = document.createElement("th"); th.textContent = c;
    if (shares.has(c)) th.className = "n";
    head.append(th);
  }
  for (const row of data.bubble) {
    const tr = $("bubble").insertRow();
    for (const c of columns) {
      const td = tr.insertCell(); td.textContent = row[c];
      if (!shares.has(c)) continue;
      td.className = "n";
      td.style.background = "linear-gradient(to left, var(--bar) " + row[c] + ", transparent 0)";
    }
  }
}
function loss() {
  const canvas = $("loss"), w = canvas.parentElement.clientWidth - 34, h = 230;
  const dots = window.devicePixelRatio || 1, c = canvas.getContext("2d"), points = data.losses;
  canvas.style.height = h + "px"; canvas.width = w * dots; canvas.height = h * dots;
  c.setTransform(dots, 0, 0, dots, 0, 0);
  c.font = "11px system-ui, 'DejaVu Sans', sans-serif"; c.fillStyle = css("soft");
  if (!points.length) { c.fillText("metrics.jsonl has no losses", 8, 20); return; }
  const ys = points.map(p => p[1]), low = Math.min(...ys), high = Math.max(...ys, low + 1e-9);
  const first = points[0][0], last = Math.max(points[points.length - 1][0], first + 1);
  const px = s => 44 + (s - first) / (last - first) * (w - 56);
  const py = v => 12 + (high - v) / (high - low) * (h - 44);
  for (let i = 0; i <= 4; ++i) {
    const v = low + (high - low) * i / 4;
    c.fillStyle = css("line"); c.fillRect(44, py(v), w - 56, 1);
    c.fillStyle = css("soft"); c.fillText(v.toPrecision(3), 4, py(v) + 4);
  }
  c.fillText("step " + first, 44, h - 8);
  c.textAlign = "right"; c.fillText("step " + points[points.length - 1][0], w - 12, h - 8);
  c.textAlign = "left"; c.strokeStyle = css("F"); c.lineWidth = 2; c.beginPath();
  points.forEach((p, i) => i ? c.lineTo(px(p[0]), py(p[1])) : c.moveTo(px(p[0]), py(p[1])));
  c.stroke(); c.fillStyle = css("F");
  if (points.length < 60) for (const p of points) {
    c.beginPath(); c.arc(px(p[0]), py(p[1]), 3, 0, 7); c.fill(); }
}
$("actors").addEventListener("change", layOut);
$("all").addEventListener("click", () => show(0, length));
window.addEventListener("resize", () => { layOut(); loss(); });
facts(); table(); loss(); layOut();
// For tests: what is drawn, and what a mouse would do.
window.troupe = { rows: () => rows.length, slices: slices.length, arrows: arrows.length,
  hover: i => { hovered = i; draw(); return describe(slices[i]); }, show };
document.body.dataset.ready = slices.length + " " + arrows.length + " " + rows.length;
if (location.hash === "#hover") window.troupe.hover(slices.findIndex(s => s.kind !== "message" &&
  s.message >= 0 && origin(s.message) && s.begin > length / 3));
</script>
</html>
)HTML";

}  // namespace troupe

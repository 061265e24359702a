#include "trace/export/page_text.hpp"

namespace troupe {

const char* const kPageTables = R"HTML(function add(parent, tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
}
function swatch(parent, colour, text) {
  const key = add(parent, "span", undefined, "key");
  add(key, "i").style.background = colour;
  key.append(text);
}
function facts() {
  const steps = data.steps.map(s => s[0]);
  $("subtitle").textContent = (steps.length ? (steps.length > 1 ? "steps " + steps[0] + "\u2013" +
    steps[steps.length - 1] : "step " + steps[0]) + ", " : "") + time(length) +
    (data.missing ? " \u2013 " + data.missing : "");
  const lengths = data.steps.map(s => s[2] - s[1]).sort((a, b) => a - b);
  const all = [["messages", data.arrows.length.toLocaleString("en")],
    ["pieces of work", slices.filter(s => s.kind !== "message").length.toLocaleString("en")],
    ["devices", data.lanes.filter(l => l.path[l.path.length - 1] === "work").length]];
  if (lengths.length) all.unshift(["a step, median", time(lengths[lengths.length >> 1])]);
  if (data.unhandled) all.push(["without an arrow", data.unhandled]);
  $("facts").textContent = "";
  for (const [name, value] of all) {
    const box = add($("facts"), "div", undefined, "fact soft"), b = add(box, "b", value);
    box.append(name); b.style.color = "var(--ink)";
  }
}
// A line of the legend for each module, then other work, which is grey.
function legend() {
  const words = { F: "F forward", B: "B backward", W: "W weight gradients" }, keys = $("keys");
  keys.textContent = "";
  const has = (kind, module) => slices.some(s => s.kind === kind &&
    (module === undefined || moduleOf(s) === module));
  data.modules.forEach((module, m) => {
    const passes = Object.keys(words).filter(kind => has(kind, m));
    if (!passes.length) return;
    const name = data.modules.length > 1 && module.short !== module.name ?
      module.name + " (" + module.short + ")" : module.name;
    add(keys, "b", name);
    for (const kind of passes) swatch(keys, shade(HUES[m % HUES.length], kind), words[kind]);
  });
  for (const kind of Object.keys(SHADES)) {
    if (!words[kind] && has(kind)) swatch(keys, shade(0, kind).replace(" 18%", " 0%"), kind);
  }
  if (slices.some(s => s.without > 0)) swatch(keys, "var(--nocore)", "no core (bottom edge)");
}
function table() {
  const columns = data.bubble.length ? Object.keys(data.bubble[0]) : [];
  const shares = new Set(["busy", "computing", "no core", "other", "waiting", "bubble"]);
  $("bubble").textContent = "";
  const head = $("bubble").insertRow();
  for (const c of columns) add(head, "th", c, shares.has(c) ? "n" : "");
  for (const row of data.bubble) {
    const tr = $("bubble").insertRow();
    for (const c of columns) {
      const td = tr.insertCell();
      if (shares.has(c)) {
        td.className = "n";
        add(add(td, "span", undefined, "share"), "i").style.width =
          parseFloat(row[c]) >= 0 ? row[c] : "0";
      }
      td.append(row[c]);
    }
  }
}
)HTML";

}  // namespace troupe

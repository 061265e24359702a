#include "trace/export/page_text.hpp"

namespace troupe {

const char* const kPageBeforeData = R"HTML(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Troupe trace</title>
<style>
:root { --bg: #f6f7f9; --card: #fff; --ink: #1b2330; --soft: #667085; --line: #e4e7ec;
  --row: #f9fafb; --F: #4c86e0; --B: #35a37b; --W: #d99a2b; --reduce: #8b6fd1; --update: #c0587e;
  --exchange: #2b9fb3; --offload: #7d8f3e; --restore: #a3793a; --message: #a9b4c4;
  --arrow: #d2452f; --bar: #dbe6f8; }
@media (prefers-color-scheme: dark) { :root { --bg: #12161d; --card: #1a2029; --ink: #e6eaf0;
  --soft: #93a0b3; --line: #2a3341; --row: #1e2530; --message: #4d5a6d; --bar: #24405f; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 20px 24px 32px; background: var(--bg); color: var(--ink);
  font: 14px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 20px; margin: 0 0 2px; } h2 { font-size: 15px; margin: 0 0 10px; }
.soft { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 14px 16px; margin-top: 16px; }
.facts { display: flex; gap: 12px; flex-wrap: wrap; margin-top: 14px; }
.fact { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 8px 16px; } .fact b { display: block; font-size: 18px; font-weight: 600; }
.bar { display: flex; gap: 14px; align-items: center; flex-wrap: wrap; margin-bottom: 8px; }
.key { display: inline-flex; align-items: center; gap: 5px; }
.key i { width: 12px; height: 12px; border-radius: 3px; display: inline-block; }
button { font: inherit; color: inherit; background: var(--row); border: 1px solid var(--line);
  border-radius: 6px; padding: 2px 10px; cursor: pointer; }
canvas { display: block; width: 100%; } #view { cursor: grab; } #view:active { cursor: grabbing; }
#scroll { max-height: 62vh; overflow-y: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th, td { padding: 5px 10px; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
#tip { position: fixed; pointer-events: none; background: var(--ink); color: var(--card);
  padding: 7px 10px; border-radius: 6px; font-size: 12.5px; max-width: 420px; display: none;
  white-space: pre-line; z-index: 5; box-shadow: 0 4px 14px #0004; }
.two { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 16px; }
@media (max-width: 900px) { .two { grid-template-columns: 1fr; } }
</style>
<h1 id="title"></h1>
<div class="soft" id="subtitle"></div>
<div class="facts" id="facts"></div>
<div class="card">
  <div class="bar"><h2 style="margin:0">Timeline by stage</h2><span id="keys" class="bar"
    style="margin:0"></span><span style="flex:1"></span>
    <label><input type="checkbox" id="actors"> all actors</label>
    <button id="all">whole stretch</button>
    <span class="soft">wheel: zoom &middot; drag: move &middot; hover: what, and from whom</span>
  </div>
  <div id="scroll"><canvas id="view"></canvas></div>
</div>
<div class="two">
  <div class="card"><h2>Where the time of each stage went</h2><table id="bubble"></table></div>
  <div class="card"><h2>Loss</h2><canvas id="loss"></canvas></div>
</div>
<div id="tip"></div>
<script type="application/json" id="data">)HTML";

}  // namespace troupe

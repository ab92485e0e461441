const dark = matchMedia('(prefers-color-scheme: dark)');
const property = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function template() {
  const [ink, grid] = [property('--ink'), property('--line')];
  const axis = {gridcolor: grid, linecolor: grid, zerolinecolor: grid};
  return {layout: {font: {color: ink}, xaxis: axis, yaxis: axis, modebar: {bgcolor: 'rgba(0,0,0,0)', color: property('--ink3'), activecolor: ink}}};
}
// Figures have the colours of light ground; DARK: each of these -> that of dark ground. What has no place there says it in `meta`.
function themed(value) {
  if (typeof value === 'string') return DARK[value] ?? value;
  if (Array.isArray(value)) return value.map(themed);
  return value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, themed(each)])) : value;
}
function inDark(trace) {
  const made = themed(trace);
  for (const [path, colours] of Object.entries(trace.meta?.dark ?? {})) {
    const [part, name] = path.split('.');
    made[part] = {...made[part], [name]: colours};
  }
  return made;
}
function draw() {
  for (const [name, {data, layout}] of Object.entries(FIGURES)) {
    const shown = dark.matches ? [data.map(inDark), themed(layout)] : [data, {...layout}];
    shown[1].template = template();
    Plotly.react(name, ...shown, {responsive: true, displaylogo: false, displayModeBar: matchMedia('(hover: hover)').matches ? 'hover' : false, modeBarButtonsToRemove: ['select2d', 'lasso2d']});
  }
}
dark.addEventListener('change', draw);
draw();

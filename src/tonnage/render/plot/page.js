const dark = matchMedia('(prefers-color-scheme: dark)');
function template() {
  const [ink, grid] = dark.matches ? ['#e6edf3', '#3d444d'] : ['#1f2328', '#d1d9e0'];
  const axis = {gridcolor: grid, linecolor: grid, zerolinecolor: grid};
  return {layout: {font: {color: ink}, xaxis: axis, yaxis: axis, modebar: {bgcolor: 'rgba(0,0,0,0)', color: '#8a8a8a', activecolor: ink}}};
}
function draw() {
  for (const [name, {data, layout}] of Object.entries(FIGURES)) {
    layout.template = template();
    Plotly.react(name, data, layout, {responsive: true, displaylogo: false, displayModeBar: matchMedia('(hover: hover)').matches ? 'hover' : false, modeBarButtonsToRemove: ['select2d', 'lasso2d']});
  }
}
dark.addEventListener('change', draw);
draw();

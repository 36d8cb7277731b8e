// The chart library, loaded when a chart is first shown.

export { default as uPlot } from "uplot";

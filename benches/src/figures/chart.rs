//! Grouped bars as SVG, with marks where a bar should reach.
//!
//! Written by hand: text and rectangles are all it needs. Never asks for a font's size: texts have
//! room enough.

use std::fmt::Write as _;

use super::table::number;

/// Colours that people with any colour vision tell apart, one for each series.
const COLOURS: [&str; 6] = ["#0072b2", "#56b4e9", "#cc79a7", "#009e73", "#666666", "#e69f00"];

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 36.0;

/// A chart: for each group a bar of each series.
#[derive(Debug)]
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    /// What the axis counts.
    pub(super) unit: &'a str,
    /// What the lower and the upper mark are called.
    pub(super) marks: [&'a str; 2],
    pub(super) groups: Vec<String>,
    pub(super) series: Vec<Series<'a>>,
}

/// The bars of one colour.
#[derive(Debug)]
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    /// One for each group.
    pub(super) bars: Vec<Bar>,
}

/// One bar and where it should end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bar {
    /// No bar where there is none.
    pub(super) value: Option<f64>,
    pub(super) marks: [Option<f64>; 2],
}

impl Chart<'_> {
    /// Writes the chart as a file of its own.
    pub(super) fn to_svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"13\" role=\"img\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"24\" font-size=\"17\">{} ({})</text>\n",
            escape(self.title),
            escape(self.unit)
        );
        let axis = Axis::up_to(self.highest());
        self.legend(&mut svg);
        axis.draw(&mut svg);
        let group_width = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        for (index, name) in self.groups.iter().enumerate() {
            let left = LEFT + index as f64 * group_width;
            text(&mut svg, left + group_width / 2.0, HEIGHT - BOTTOM + 20.0, "middle", name);
            self.bars(&mut svg, &axis, index, left, group_width);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn highest(&self) -> f64 {
        let bars = self.series.iter().flat_map(|series| &series.bars);
        bars.flat_map(|bar| bar.marks.into_iter().chain([bar.value])).flatten().fold(0.0, f64::max)
    }

    fn has_marks(&self, which: usize) -> bool {
        let mut bars = self.series.iter().flat_map(|series| &series.bars);
        bars.any(|bar| bar.marks.get(which).is_some_and(Option::is_some))
    }

    fn legend(&self, svg: &mut String) {
        let mut x = LEFT;
        let width = |name: &str| 34.0 + 7.0 * name.chars().count() as f64;
        for (series, colour) in self.series.iter().zip(COLOURS) {
            rectangle(svg, x, 44.0, 14.0, 14.0, colour, "");
            text(svg, x + 20.0, 56.0, "start", series.name);
            x += width(series.name);
        }
        for (which, name) in self.marks.iter().enumerate() {
            if self.has_marks(which) {
                mark(svg, x, 51.0, 14.0, which);
                text(svg, x + 20.0, 56.0, "start", name);
                x += width(name);
            }
        }
    }

    fn bars(&self, svg: &mut String, axis: &Axis, group: usize, left: f64, group_width: f64) {
        let bar_width = group_width * 0.84 / self.series.len().max(1) as f64;
        for (index, (series, colour)) in self.series.iter().zip(COLOURS).enumerate() {
            let x = left + group_width * 0.08 + index as f64 * bar_width;
            let bar = series.bars.get(group).copied().unwrap_or_default();
            if let Some(value) = bar.value {
                let y = axis.y(value);
                let name = self.groups.get(group).map_or("", String::as_str);
                let title = format!("{name}, {}: {} {}", series.name, number(value), self.unit);
                rectangle(svg, x, y, bar_width - 1.0, axis.y(0.0) - y, colour, &title);
            }
            for (which, at) in bar.marks.into_iter().enumerate() {
                if let Some(at) = at {
                    mark(svg, x, axis.y(at), bar_width - 1.0, which);
                }
            }
        }
    }
}

/// From 0 to a round number, in round steps.
struct Axis {
    step: f64,
    steps: u32,
}

impl Axis {
    fn up_to(highest: f64) -> Self {
        if highest <= 0.0 {
            return Self { step: 1.0, steps: 1 };
        }
        let power = 10_f64.powf((highest / 8.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| highest <= step * 8.0);
        let step = step.unwrap_or(highest);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 8 by the choice of step"
        )]
        let steps = (highest / step).ceil() as u32;
        Self { step, steps }
    }

    fn y(&self, value: f64) -> f64 {
        let bottom = HEIGHT - BOTTOM;
        bottom - value / (self.step * f64::from(self.steps)) * (bottom - TOP)
    }

    fn draw(&self, svg: &mut String) {
        for step in 0..=self.steps {
            let value = f64::from(step) * self.step;
            let y = self.y(value);
            // Writing to a String cannot fail.
            let _ = writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"#dddddd\"/>", WIDTH - RIGHT);
            text(svg, LEFT - 8.0, y + 4.0, "end", &label(value));
        }
    }
}

/// Writes a number without the zeros at its end.
fn label(value: f64) -> String {
    let text = number(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn rectangle(svg: &mut String, x: f64, y: f64, width: f64, height: f64, colour: &str, title: &str) {
    let size = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"");
    let _ = match title {
        "" => writeln!(svg, "<rect {size}/>"),
        title => writeln!(svg, "<rect {size}><title>{}</title></rect>", escape(title)),
    };
}

/// The lower mark is a full line, the upper one is dashed.
fn mark(svg: &mut String, x: f64, y: f64, width: f64, which: usize) {
    let dashes = if which == 0 { "" } else { " stroke-dasharray=\"3 2\"" };
    let _ = writeln!(svg, "<path d=\"M{x:.1} {y:.1}h{width:.1}\" stroke=\"#000000\" stroke-width=\"2\"{dashes}/>");
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(text));
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart<'static> {
        let bar = |value, must| Bar { value, marks: [must, None] };
        Chart {
            title: "a & b",
            unit: "<MB/s>",
            marks: ["must", "stretch"],
            groups: vec!["one".to_owned(), "say \"two\"".to_owned()],
            series: vec![
                Series { name: "ours", bars: vec![bar(Some(50.0), Some(80.0)), bar(Some(100.0), None)] },
                Series { name: "theirs", bars: vec![bar(None, None)] },
            ],
        }
    }

    #[test]
    fn texts_are_escaped() {
        let svg = chart().to_svg();
        assert!(svg.contains("a &amp; b (&lt;MB/s&gt;)"), "{svg}");
        assert!(svg.contains(">say &quot;two&quot;</text>"), "{svg}");
        assert!(svg.contains("<title>say &quot;two&quot;, ours: 100 &lt;MB/s&gt;</title>"), "{svg}");
    }

    #[test]
    fn a_bar_that_was_not_measured_is_not_drawn_and_marks_are_named_where_there_are_some() {
        let svg = chart().to_svg();
        assert_eq!(svg.matches("<title>").count(), 2);
        // The mark and its line in the legend.
        assert_eq!(svg.matches("stroke-width=\"2\"").count(), 2);
        assert!(svg.contains(">must</text>") && !svg.contains(">stretch</text>"), "{svg}");
        // Every element is closed.
        assert_eq!(svg.matches('<').count(), svg.matches('>').count());
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    #[test]
    fn an_axis_ends_at_a_round_number_above_the_highest_bar() {
        // (highest, step, steps)
        let cases =
            [(0.0, 1.0, 1), (6_500.0, 1_000.0, 7), (8_000.0, 1_000.0, 8), (8_001.0, 2_000.0, 5), (1.84, 0.5, 4)];
        for (highest, step, steps) in cases {
            let axis = Axis::up_to(highest);
            assert!((axis.step - step).abs() < 1e-9 && axis.steps == steps, "{highest}: {} {}", axis.step, axis.steps);
        }
    }

    #[test]
    fn labels_have_no_zeros_at_their_end() {
        assert_eq!([50.0, 0.5, 1.25, 7_000.0, 0.0].map(label), ["50", "0.5", "1.25", "7,000", "0"]);
    }

    #[test]
    fn the_tallest_bar_stays_inside() {
        let axis = Axis::up_to(6_500.0);
        assert!(axis.y(6_500.0) >= TOP && (axis.y(0.0) - (HEIGHT - BOTTOM)).abs() < 1e-9);
    }
}

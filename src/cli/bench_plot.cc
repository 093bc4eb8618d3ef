// cli/bench_plot.cc
// Axes, lines and whiskers as SVG text, behind cli/bench_plot.h. The horizontal positions are the
// lengths measured, evenly spaced: they are usually powers of two.
#include "cli/bench_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "cli/format.h"

namespace plumb::cli {
namespace {

constexpr int kPanelWidth = 460;
constexpr int kHeight = 400;
constexpr int kLeft = 70, kRight = 20, kTop = 64, kBottom = 60;
constexpr int kGridLines = 5;
constexpr std::array<std::string_view, 6> kColours = {"#1f77b4", "#d95f02", "#2a9d5b",
                                                      "#8856a7", "#a6761d", "#555555"};

struct PlotPoint {
  uint32_t x = 0;
  Spread speed;
};
struct Line {
  std::string name;
  std::vector<PlotPoint> points;
};
struct Panel {
  std::string title;
  std::string x_label;
  std::vector<Line> lines;
};

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : Printable(text, 200)) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string TextAt(double x, double y, std::string_view anchor, std::string_view text,
                   std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, Escaped(text));
}

// A round number at or above `value`: 1, 2, 2.5 or 5 times a power of ten, times kGridLines.
double RoundTop(double value) {
  const double step = value / kGridLines;
  const double power = std::pow(10.0, std::floor(std::log10(std::max(step, 1e-9))));
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    if (factor * power >= step) return factor * power * kGridLines;
  }
  return 10.0 * power * kGridLines;
}

// Draws one panel with its left edge at `origin`.
class PanelDrawing {
 public:
  PanelDrawing(const Panel& panel, int origin) : panel_(panel), origin_(origin) {
    double top = 0;
    for (const Line& line : panel.lines) {
      for (const PlotPoint& point : line.points) {
        xs_.push_back(point.x);
        top = std::max(top, point.speed.max);
      }
    }
    std::ranges::sort(xs_);
    const auto repeated = std::ranges::unique(xs_);
    xs_.erase(repeated.begin(), repeated.end());
    top_ = RoundTop(top);
  }

  std::string Draw() const {
    std::string svg = Axes();
    for (size_t i = 0; i < panel_.lines.size(); ++i) svg += DrawLine(panel_.lines[i], i);
    return svg;
  }

 private:
  double X(uint32_t value) const {
    const auto place = static_cast<double>(std::ranges::lower_bound(xs_, value) - xs_.begin());
    const double width = kPanelWidth - kLeft - kRight;
    return origin_ + kLeft + width * (place + 0.5) / static_cast<double>(xs_.size());
  }
  double Y(double speed) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * speed / top_;
  }

  std::string Axes() const {
    const double left = origin_ + kLeft, right = origin_ + kPanelWidth - kRight;
    std::string svg = TextAt(left, kTop - 14, "start", panel_.title, " font-weight=\"bold\"");
    for (int i = 0; i <= kGridLines; ++i) {
      const double speed = top_ * i / kGridLines;
      svg += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", left,
          Y(speed), right, Y(speed), i == 0 ? "#333333" : "#dddddd");
      svg += TextAt(left - 6, Y(speed) + 4, "end", fmt::format("{:g}", speed));
    }
    for (const uint32_t x : xs_) {
      svg += TextAt(X(x), kHeight - kBottom + 18, "middle", fmt::format("{}", x));
    }
    svg += TextAt((left + right) / 2, kHeight - 16, "middle", panel_.x_label);
    const double middle = (kTop + kHeight - kBottom) / 2.0;
    return svg + TextAt(origin_ + 16, middle, "middle", "tokens/s",
                        fmt::format(" transform=\"rotate(-90 {} {:.1f})\"", origin_ + 16, middle));
  }

  std::string DrawLine(const Line& line, size_t index) const {
    const std::string_view colour = kColours[index % kColours.size()];
    std::string path, marks;
    for (const PlotPoint& point : line.points) {
      const double x = X(point.x), y = Y(point.speed.median);
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x, y);
      marks += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n"
          "<circle cx=\"{0:.1f}\" cy=\"{4:.1f}\" r=\"3.5\" fill=\"{3}\"/>\n",
          x, Y(point.speed.min), Y(point.speed.max), colour, y);
    }
    if (!line.name.empty()) {
      marks += TextAt(origin_ + kLeft + 8, kTop + 14 + 16 * static_cast<double>(index), "start",
                      line.name, fmt::format(" fill=\"{}\"", colour));
    }
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                       path, colour) +
           marks;
  }

  const Panel& panel_;
  const int origin_;
  std::vector<uint32_t> xs_;  // sorted, each once
  double top_ = 1;
};

void AddTo(std::vector<Line>& lines, const std::string& name, const PlotPoint& point) {
  auto line = std::ranges::find(lines, name, &Line::name);
  if (line == lines.end()) line = lines.insert(lines.end(), {name, {}});
  line->points.push_back(point);
}

}  // namespace

std::string BenchPlot(const EngineBenchReport& report) {
  Panel prefill{"Prefill", "prompt tokens", {}};
  Panel decode{"Decode, all sequences together", "sequences", {}};
  for (const BenchPoint& point : report.points) {
    if (point.seconds.empty()) continue;
    if (point.kind == BenchKind::kPrefill) {
      AddTo(prefill.lines, "", {point.prompt, SpeedOf(point)});
    } else {
      AddTo(decode.lines, fmt::format("context {}", point.context), {point.batch, SpeedOf(point)});
    }
  }
  std::string body;
  int width = 0;
  for (Panel* panel : {&prefill, &decode}) {
    if (panel->lines.empty()) continue;
    for (Line& line : panel->lines) std::ranges::sort(line.points, {}, &PlotPoint::x);
    body += PanelDrawing(*panel, width).Draw();
    width += kPanelWidth;
  }
  width = std::max(width, kPanelWidth);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
             "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
             width, kHeight) +
         TextAt(16, 24, "start",
                fmt::format("{}: {} threads, {} kernels, {}", report.model_id, report.threads,
                            report.kernels, report.machine.cpu),
                " font-size=\"14\"") +
         body + "</svg>\n";
}

}  // namespace plumb::cli

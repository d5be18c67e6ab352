#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/graph_picture.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/explain/explain_page.h"
#include "tandem/runtime/explain/explainer.h"

namespace tandem {
namespace {

// What a browser still moves about with ease.
constexpr std::size_t kMaxSpans = 4000;
constexpr std::size_t kMaxRows = 2000;
constexpr std::size_t kMaxPoints = 1000;
constexpr int kColours = 8;
constexpr int kRowHeight = 24;
constexpr int kTicks = 10;  // of the axis of time

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::string percent(double share) { return cat(static_cast<int>(100 * share + 0.5), " %"); }

// A cell; numbers are sorted by value.
std::string text_cell(const std::string& text) { return cat("<td>", escape_html(text), "</td>"); }
std::string number_cell(double value, const std::string& shown) {
  return cat("<td class=\"n\" data-v=\"", value, "\">", shown, "</td>");
}

class PageWriter {
 public:
  explicit PageWriter(const Explanation& e) : e_(e) {}

  std::string operator()() {
    out_ << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width\">\n<title>"
         << escape_html(e_.title) << "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n"
         << ExplainPage::style() << GraphPicture::style() << "</style></head><body>\n";
    summary();
    network();
    advice();
    timeline();
    memory();
    graph();
    copies();
    ops();
    out_ << "<script>" << ExplainPage::script() << GraphPicture::script()
         << "</script></body></html>\n";
    return std::move(out_).str();
  }

 private:
  std::string colour(int device) const { return cat("d", device % kColours); }
  const std::string& device(int d) const { return e_.devices[index(d)].short_name; }
  std::string device_cell(int d, const char* state = "") const {
    return cat("<td><span class=\"swatch ", colour(d), "\"></span>", escape_html(device(d)), state,
               "</td>");
  }

  void card(const std::string& value, const std::string& what) {
    out_ << "<div class=\"card\"><b>" << escape_html(value) << "</b>" << escape_html(what)
         << "</div>\n";
  }

  void summary() {
    out_ << "<header><h1>" << escape_html(e_.title) << "</h1><span class=\"faint\">placed by the "
         << e_.policy
         << " policy</span><button id=\"theme\">light / dark</button></header>\n"
            "<div class=\"cards\">\n";
    card(seconds_text(e_.step_seconds), "a step, expected");
    if (e_.measured_step)
      card(seconds_text(*e_.measured_step), cat("a step, measured: ", mean_of(e_.measured_runs)));
    if (e_.input_waiting) card(percent_text(*e_.input_waiting), "of the time waiting for input");
    card(std::to_string(e_.ops.size()), cat("ops, costs of ", e_.costs_measured, " measured"));
    card(bytes_text(e_.copied_bytes()),
         cat("a step in ", counted(e_.copies.size(), "copy", "copies"), ", ",
             seconds_text(e_.copy_seconds()), " on the way"));
    if (!e_.network.empty()) {
      card(bytes_text(e_.network_bytes()),
           cat("a step over the network, ", seconds_text(e_.network_seconds()), " on the way"));
    }
    out_ << "</div>\n";
    for (const std::string& note : e_.notes)
      out_ << "<p class=\"faint\">" << escape_html(note) << "</p>\n";
    out_
        << "<h2>Devices</h2>\n<div class=\"scroll\"><table><thead><tr><th>device<th class=n>ops<th "
           "class=n>busy<th class=n>work<th class=n>memory, most<th "
           "class=n>limit</tr></thead><tbody>\n";
    for (std::size_t d = 0; d < e_.devices.size(); ++d) {
      const auto& model = e_.devices[d];
      out_ << "<tr>" << device_cell(static_cast<int>(d), model.lost.empty() ? "" : ", lost")
           << number_cell(model.ops, std::to_string(model.ops))
           << number_cell(model.busy, percent(model.busy))
           << number_cell(model.seconds, seconds_text(model.seconds))
           << number_cell(model.memory_peak, bytes_text(model.memory_peak))
           << number_cell(model.memory_limit,
                          model.memory_limit > 0 ? bytes_text(model.memory_limit) : "-")
           << "</tr>\n";
    }
    out_ << "</tbody></table></div>\n";
  }

  void network() {
    if (e_.network.empty()) return;
    out_ << "<h2>Network</h2>\n<div class=\"scroll\"><table><thead><tr><th>from<th>to<th "
            "class=n>values<th class=n>bytes<th class=n>expected<th>the longest</tr></thead>"
            "<tbody>\n";
    for (const auto& transfer : e_.network) {
      const auto& longest = e_.copies[index(transfer.copies.front())];
      out_ << "<tr>" << text_cell(e_.devices[index(transfer.from)].task)
           << text_cell(e_.devices[index(transfer.to)].task)
           << number_cell(static_cast<double>(transfer.copies.size()),
                          std::to_string(transfer.copies.size()))
           << number_cell(transfer.bytes, bytes_text(transfer.bytes))
           << number_cell(transfer.seconds, seconds_text(transfer.seconds))
           << text_cell(longest.value) << "</tr>\n";
    }
    out_ << "</tbody></table></div>\n";
  }

  template <class Entries>
  void list(const char* title, const Entries& entries) {
    if (entries.empty()) return;
    out_ << "<h2>" << title << "</h2>\n<ol>\n";
    constexpr std::size_t kMax = 20;
    for (std::size_t i = 0; i < entries.size() && i < kMax; ++i)
      out_ << "<li>" << escape_html(entries[i].text) << "</li>\n";
    out_ << "</ol>\n";
    if (entries.size() > kMax) out_ << "<p>… and " << entries.size() - kMax << " more</p>\n";
  }

  void advice() {
    list("Advice", e_.advice);
    list("Back and forth", e_.back_and_forth);
    list("Fusions", e_.fusions);
    if (e_.host_reads.empty()) return;
    out_ << "<h2>Small values read back to the host</h2>\n<p>";
    constexpr std::size_t kNamed = 20;
    for (std::size_t i = 0; i < e_.host_reads.size() && i < kNamed; ++i)
      out_ << (i ? ", " : "") << escape_html(e_.copies[index(e_.host_reads[i])].value);
    if (e_.host_reads.size() > kNamed) out_ << " and " << e_.host_reads.size() - kNamed << " more";
    out_ << "</p>\n";
  }

  std::string row_name(int device_number, int stream) const {
    return cat(device(device_number), stream == -1   ? " copies in"
                                      : stream == -2 ? " copies out"
                                                     : cat(" compute ", stream));
  }

  std::string span_title(const Explanation::Span& s) const {
    std::string text;
    if (s.copy >= 0) {
      const auto& copy = e_.copies[index(s.copy)];
      text = cat("copy of ", copy.value, " from ", device(copy.from), " to ", device(copy.to), ", ",
                 bytes_text(copy.bytes));
    } else if (s.op >= 0) {
      text = cat(e_.ops[index(s.op)].name, " (", e_.ops[index(s.op)].op, ")");
    }
    return cat(text, "\nfrom ", seconds_text(s.begin), " to ", seconds_text(s.end), ": ",
               seconds_text(s.end - s.begin));
  }

  void timeline() {
    if (e_.spans.empty() || e_.step_seconds <= 0) return;
    std::vector<const Explanation::Span*> spans;
    for (const auto& s : e_.spans) {
      if (s.end > s.begin) spans.push_back(&s);
    }
    const std::size_t all = spans.size();
    if (all > kMaxSpans) {
      std::nth_element(
          spans.begin(), spans.begin() + kMaxSpans, spans.end(),
          [](const auto* a, const auto* b) { return a->end - a->begin > b->end - b->begin; });
      spans.resize(kMaxSpans);
    }
    // Compute above copies; by device.
    std::map<std::pair<int, int>, int> rows;
    for (const auto* s : spans) rows[{s->device, s->stream < 0 ? 1000 - s->stream : s->stream}] = 0;
    int number = 0;
    out_ << "<h2>A step on the clock</h2>\n<p class=\"faint\">Expected; point at a bar to see what "
            "it is. <button class=\"zoom\" value=\"1.6\">+</button> <button class=\"zoom\" "
            "value=\"0.625\">-</button> or ctrl + wheel to zoom. Ops have the colour of their "
            "device, "
            "<span class=\"swatch copy\"></span>copies are alike everywhere.";
    if (all > kMaxSpans) out_ << " The " << kMaxSpans << " longest of " << all << " are drawn.";
    out_ << "</p>\n<div class=\"scroll\"><div class=\"labels\">";
    for (auto& [key, row] : rows) {
      row = number++;
      const int stream = key.second >= 1000 ? 1000 - key.second : key.second;
      out_ << "<div><span class=\"swatch " << colour(key.first) << "\"></span>"
           << escape_html(row_name(key.first, stream)) << "</div>";
    }
    const int height = number * kRowHeight;
    out_ << "</div><div class=\"bars\"><svg class=\"time\" width=\"100%\" height=\"" << height + 20
         << "\">\n";
    for (int r = 0; r < number; ++r)
      out_ << "<rect class=\"row\" x=\"0\" width=\"100%\" y=\"" << r * kRowHeight + 3
           << "\" height=\"" << kRowHeight - 6 << "\"/>\n";
    for (int t = 0; t < kTicks; ++t) {
      out_ << "<line x1=\"" << 100 * t / kTicks << "%\" x2=\"" << 100 * t / kTicks
           << "%\" y1=\"0\" y2=\"" << height << "\"/><text x=\"" << 100 * t / kTicks << "%\" y=\""
           << height + 14 << "\">" << seconds_text(e_.step_seconds * t / kTicks) << "</text>\n";
    }
    for (const auto* s : spans) {
      const int row = rows[{s->device, s->stream < 0 ? 1000 - s->stream : s->stream}];
      out_ << "<rect class=\"" << (s->copy >= 0 ? "copy" : "work " + colour(s->device)) << "\" x=\""
           << 100 * s->begin / e_.step_seconds << "%\" width=\""
           << std::max(100 * (s->end - s->begin) / e_.step_seconds, 0.02) << "%\" y=\""
           << row * kRowHeight + 3 << "\" height=\"" << kRowHeight - 6 << "\"><title>"
           << escape_html(span_title(*s)) << "</title></rect>\n";
    }
    out_ << "</svg></div></div>\n";
  }

  // Keeps the highest of many points in each of equal parts of the time.
  std::vector<std::pair<double, double>> thinned(
      const std::vector<std::pair<double, double>>& points) const {
    if (points.size() <= kMaxPoints) return points;
    std::vector<std::pair<double, double>> kept;
    const double part = e_.step_seconds / kMaxPoints;
    for (const auto& [time, bytes] : points) {
      const double begin = part > 0 ? std::floor(time / part) * part : 0;
      if (kept.empty() || kept.back().first < begin) {
        kept.emplace_back(begin, bytes);
      } else {
        kept.back().second = std::max(kept.back().second, bytes);
      }
    }
    return kept;
  }

  void memory() {
    if (e_.step_seconds <= 0) return;
    bool first = true;
    for (std::size_t d = 0; d < e_.devices.size(); ++d) {
      const auto& model = e_.devices[d];
      double most = model.memory_peak;
      for (const auto& [time, bytes] : model.memory) most = std::max(most, bytes);
      if (most <= 0) continue;
      if (first) {
        out_ << "<h2>Memory held</h2>\n<p class=\"faint\">Over the same time as the step above; "
                "<span class=\"swatch limit\"></span>is a device's limit, where it is near.</p>\n";
      }
      first = false;
      const bool limit = model.memory_limit > 0 && model.memory_limit < 3 * most;
      const double top = 1.05 * (limit ? std::max(most, model.memory_limit) : most);
      const std::string of_device = colour(static_cast<int>(d));
      out_ << "<div class=\"scroll\"><div class=\"labels\"><div><span class=\"swatch " << of_device
           << "\"></span>" << escape_html(model.short_name) << "</div><div>" << bytes_text(most)
           << " at most</div>"
           << (model.memory_limit > 0 ? cat("<div>of ", bytes_text(model.memory_limit), "</div>")
                                      : "")
           << "</div><div class=\"bars\"><svg class=\"memory " << of_device
           << "\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\">";
      for (int t = 1; t < kTicks; ++t) {
        const int x = 1000 * t / kTicks;
        out_ << "<line x1=\"" << x << "\" x2=\"" << x << "\" y1=\"0\" y2=\"100\"/>";
      }
      out_ << "<path d=\"M0 100";
      double last = 0;
      for (const auto& [time, bytes] : thinned(model.memory)) {
        const double x = 1000 * time / e_.step_seconds;
        out_ << 'L' << x << ' ' << 100 - 100 * last / top << 'L' << x << ' '
             << 100 - 100 * bytes / top;
        last = bytes;
      }
      out_ << "L1000 " << 100 - 100 * last / top << "L1000 100Z\"/>";
      if (limit) {
        const double y = 100 - 100 * model.memory_limit / top;
        out_ << "<line class=\"limit\" x1=\"0\" x2=\"1000\" y1=\"" << y << "\" y2=\"" << y
             << "\"/>";
      }
      out_ << "</svg></div></div>\n";
    }
  }

  std::string details(const Explanation::Op& op) const {
    std::string text = cat(op.name, "\n", op.op, "\non ", device(op.device), ": ", op.reason);
    for (const std::string& refused : op.refused) text += "\n" + refused;
    if (op.seconds > 0) {
      text += cat("\nexpected ", seconds_text(op.seconds),
                  op.cost_measured ? " (measured earlier)" : " (modelled)");
    }
    if (op.kernel) {
      text += cat("\nkernel ", op.kernel->chosen, ", ", op.kernel->reason, ": ",
                  candidates_text(*op.kernel));
    }
    if (op.measured)
      text += cat("\nmeasured ", seconds_text(op.measured->seconds), " in ", op.measured->runs,
                  " runs");
    if (op.bytes > 0) text += cat("\noutputs ", bytes_text(op.bytes));
    if (!op.where.empty()) text += "\n" + op.where;
    return text;
  }

  void graph() {
    std::vector<int> number(e_.ops.size(), -1);
    GraphPicture picture;
    for (std::size_t o = 0; o < e_.ops.size(); ++o) {
      const Explanation::Op& op = e_.ops[o];
      if (op.is_constant) continue;
      GraphPicture::Node node;
      node.name = op.name;
      node.op = op.seconds > 0 ? cat(op.op, " · ", seconds_text(op.seconds)) : op.op;
      node.details = details(op);
      node.css_class = colour(op.device);
      node.seconds = op.seconds;
      for (const int in : op.inputs) {
        if (in >= 0 && number[index(in)] >= 0) node.inputs.push_back(number[index(in)]);
      }
      for (const int before : op.controls) {
        if (before >= 0 && number[index(before)] >= 0)
          node.controls.push_back(number[index(before)]);
      }
      number[o] = picture.add(std::move(node));
    }
    out_ << "<h2>Graph</h2>\n<p class=\"faint\">Folded by name scope: click a group to open or "
            "close "
            "it. Coloured by device; constants are left out. Drag to move, wheel to zoom. <input "
            "class=\"find\" placeholder=\"find, Enter goes there\"> <button "
            "class=\"fit\">fit</button>";
    out_ << "</p>\n<div class=\"scroll\">" << picture.svg() << "</div>\n";
  }

  void table_begin(const char* id, const char* title, const std::string& head, std::size_t rows) {
    out_ << "<h2>" << title << "</h2>\n<p class=\"faint\"><input class=\"filter\" data-table=\""
         << id << "\" placeholder=\"filter\"> Click a head to sort.";
    if (rows > kMaxRows)
      out_ << " " << kMaxRows << " of " << rows << " rows are shown, those that take longest.";
    out_ << "</p>\n<div class=\"scroll\"><table id=\"" << id << "\"><thead><tr>" << head
         << "</tr></thead><tbody>\n";
  }

  template <class Seconds>
  static std::vector<std::size_t> rows(std::size_t count, Seconds seconds) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    if (count <= kMaxRows) return order;
    std::nth_element(order.begin(), order.begin() + kMaxRows, order.end(),
                     [&](std::size_t a, std::size_t b) { return seconds(a) > seconds(b); });
    order.resize(kMaxRows);
    std::sort(order.begin(), order.end());
    return order;
  }

  static std::string time_cell(const std::optional<double>& seconds) {
    return number_cell(seconds.value_or(0), seconds ? seconds_text(*seconds) : "-");
  }

  void copies() {
    if (e_.copies.empty()) return;
    table_begin("copies", "Copies",
                "<th>value<th>from<th>to<th class=n>bytes<th class=n>a step<th class=n>expected<th "
                "class=n>measured<th>for",
                e_.copies.size());
    for (const std::size_t c :
         rows(e_.copies.size(), [&](std::size_t i) { return e_.copies[i].seconds; })) {
      const auto& copy = e_.copies[c];
      out_ << "<tr>" << text_cell(copy.value) << device_cell(copy.from) << device_cell(copy.to)
           << number_cell(copy.bytes, copy.bytes > 0 ? bytes_text(copy.bytes) : "?")
           << number_cell(
                  copy.per_step,
                  cat(copy.per_step,
                      copy.loop.empty() ? "" : escape_html(" an iteration of " + copy.loop)))
           << time_cell(copy.seconds) << time_cell(copy.measured)
           << text_cell(readers_text(e_, copy, 4)) << "</tr>\n";
    }
    out_ << "</tbody></table></div>\n";
  }

  void ops() {
    table_begin(
        "ops", "Ops",
        "<th>node<th>op<th>device<th class=n>expected<th class=n>measured<th class=n>outputs"
        "<th>why there",
        e_.ops.size());
    bool starred = false;
    for (const std::size_t o :
         rows(e_.ops.size(), [&](std::size_t i) { return e_.ops[i].seconds; })) {
      const auto& op = e_.ops[o];
      starred |= op.seconds > 0 && !op.cost_measured;
      std::string why = op.reason;
      for (const std::string& refused : op.refused) why += "; " + refused;
      if (op.kernel) why += cat("; kernel ", op.kernel->chosen, ", ", op.kernel->reason);
      out_ << "<tr>" << text_cell(op.name) << text_cell(op.op) << device_cell(op.device)
           << number_cell(op.seconds, op.seconds > 0
                                          ? seconds_text(op.seconds) + (op.cost_measured ? "" : "*")
                                          : "-")
           << time_cell(op.measured ? std::optional(op.measured->seconds) : std::nullopt)
           << number_cell(op.bytes, bytes_text(op.bytes)) << text_cell(why) << "</tr>\n";
    }
    out_ << "</tbody></table></div>\n";
    if (starred) out_ << "<p class=\"faint\">* modelled, not measured</p>\n";
  }

  const Explanation& e_;
  std::ostringstream out_;
};

}  // namespace

std::string Explanation::to_html() const { return PageWriter(*this)(); }

}  // namespace tandem

#include "tandem/data/pipeline_stats.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "tandem/data/observe/figures.h"
#include "tandem/data/observe/pipeline_model.h"

namespace tandem::data {
namespace {

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

int depth_of(const PipelineStats& stats, std::size_t stage) {
  int depth = 0;
  for (int at = stats.stages[stage].consumer; at >= 0; ++depth) {
    at = stats.stages[static_cast<std::size_t>(at)].consumer;
  }
  return depth;
}

constexpr std::size_t kColumns = 10, kIdleColumn = 4;
using Row = std::array<std::string, kColumns>;

Row row_of(const PipelineStats& stats, std::size_t number, double work) {
  const PipelineStats::Stage& s = stats.stages[number];
  const std::string indent(2 * static_cast<std::size_t>(depth_of(stats, number)), ' ');
  const bool waits = s.threads > 0 || s.waited_for > 0;
  return {
      indent + stage_label(stats, static_cast<int>(number)) + (s.nested ? " *" : ""),
      std::to_string(s.elements),
      time_text(s.work_per_element()),
      percent_text(ratio(s.work, work)),
      s.idle >= 0.05 * s.work && s.idle > 0 ? percent_text(ratio(s.idle, s.work)) : "",
      waits ? time_text(s.waited_for) : "",
      s.threads > 0 || s.tuned ? std::to_string(s.threads) + (s.tuned ? " tuned" : "") : "",
      s.threads > 0 ? time_text(s.input_waited) : "",
      s.buffer_size > 0 ? percent_text(s.buffer_fill) + " of " + std::to_string(s.buffer_size) : "",
      s.bytes > 0 ? bytes_text(s.bytes_per_element()) : ""};
}

}  // namespace

double PipelineStats::Stage::work_per_element() const {
  return ratio(work, static_cast<double>(elements));
}
double PipelineStats::Stage::bytes_per_element() const {
  return ratio(static_cast<double>(bytes), static_cast<double>(elements));
}
double PipelineStats::waiting_share() const { return ratio(in_next, seconds); }
double PipelineStats::elements_per_second() const {
  return ratio(static_cast<double>(elements), seconds);
}
double PipelineStats::bytes_per_second() const {
  return stages.empty() ? 0 : ratio(static_cast<double>(stages.front().bytes), seconds);
}

std::ostream& operator<<(std::ostream& out, const PipelineStats& stats) {
  double work = 0;
  bool nested = false;
  for (const PipelineStats::Stage& stage : stats.stages) {
    work += stage.work;
    nested |= stage.nested;
  }
  std::vector<Row> rows = {{"stage", "elements", "work/element", "of work", "idle", "waited for",
                            "threads", "they waited", "buffer", "bytes/element"}};
  for (std::size_t i = 0; i < stats.stages.size(); ++i) rows.push_back(row_of(stats, i, work));
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], width(row[c]));
  }
  const bool any_idle = std::any_of(rows.begin() + 1, rows.end(),
                                    [](const Row& row) { return !row[kIdleColumn].empty(); });
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < kColumns; ++c) {
      if (c == kIdleColumn && !any_idle) continue;
      const std::string gap(widths[c] - width(row[c]), ' ');
      line += c == 0 ? row[c] + gap : "  " + gap + row[c];
    }
    out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
  if (nested) out << "* made by a function of the stage above it\n";
  return out;
}

}  // namespace tandem::data

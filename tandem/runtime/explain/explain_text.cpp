#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/explain/explainer.h"

namespace tandem {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// Letters, not bytes.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string percent(double share) { return cat(static_cast<int>(100 * share + 0.5), " %"); }

class Table {
 public:
  explicit Table(std::vector<std::string> head, std::size_t most = SIZE_MAX)
      : most_(most), rows_{std::move(head)} {}
  /// False if the table does not show it: it has all that it may have.
  bool add(std::vector<std::string> row) {
    if (rows_.size() > most_) {
      ++more_;
      return false;
    }
    rows_.push_back(std::move(row));
    return true;
  }
  void print(std::ostream& out) const {
    std::vector<std::size_t> widths(rows_[0].size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
    }
    for (const auto& row : rows_) {
      std::string line = " ";
      for (std::size_t c = 0; c < row.size(); ++c) {
        line += " " + row[c];
        if (c + 1 < row.size()) line += std::string(widths[c] - width(row[c]) + 1, ' ');
      }
      out << line << '\n';
    }
    if (more_) out << "  … and " << more_ << " more\n";
  }

 private:
  std::size_t most_;
  std::size_t more_ = 0;
  std::vector<std::vector<std::string>> rows_;
};

class TextWriter {
 public:
  TextWriter(const Explanation& e, std::size_t most) : e_(e), most_(most) {}

  std::string operator()() {
    summary();
    devices();
    network();
    list("advice", e_.advice);
    list("back and forth", e_.back_and_forth);
    host_reads();
    list("fusions", e_.fusions);
    if (most_ > 0) {
      copies();
      ops();
      kernels();
    }
    return std::move(out_).str();
  }

 private:
  const std::string& device(int d) const { return e_.devices[index(d)].short_name; }

  void summary() {
    std::size_t used = 0;
    for (const auto& d : e_.devices) used += d.ops > 0;
    out_ << e_.title << ": " << counted(e_.ops.size(), "op", "ops") << " on "
         << counted(used, "device", "devices") << ", "
         << counted(e_.copies.size(), "copy", "copies") << " a step, placed by the " << e_.policy
         << " policy\n";
    out_ << "  expected  " << seconds_text(e_.step_seconds) << " a step (costs of "
         << counted(static_cast<std::size_t>(e_.costs_measured), "op", "ops")
         << " measured, of the others modelled)\n";
    if (e_.measured_step) {
      out_ << "  measured  " << seconds_text(*e_.measured_step) << " a step ("
           << mean_of(e_.measured_runs) << ")\n";
    }
    if (e_.plans_made != 0) {
      out_ << "  plans     " << e_.plans_made << " made, " << e_.plans_shared
           << " of them for sizes that vary\n";
    }
    if (e_.input_waiting) {
      out_ << "  input     " << percent_text(*e_.input_waiting) << " of the time waiting\n";
    }
    if (!e_.copies.empty()) {
      out_ << "  copied    " << bytes_text(e_.copied_bytes()) << " a step, "
           << seconds_text(e_.copy_seconds()) << " on the way\n";
    }
    if (!e_.network.empty()) {
      out_ << "  network   " << bytes_text(e_.network_bytes()) << " a step between tasks, "
           << seconds_text(e_.network_seconds()) << " on the way\n";
    }
    for (const std::string& note : e_.notes) out_ << "  note: " << note << '\n';
  }

  void devices() {
    out_ << "\ndevices\n";
    Table table({"device", "ops", "busy", "work", "memory, most", "limit"});
    for (const auto& d : e_.devices) {
      table.add({d.lost.empty() ? d.short_name : d.short_name + ", lost", std::to_string(d.ops),
                 percent(d.busy), seconds_text(d.seconds), bytes_text(d.memory_peak),
                 d.memory_limit <= 0              ? std::string("-")
                 : d.memory_peak > d.memory_limit ? bytes_text(d.memory_limit) + ", too little"
                                                  : bytes_text(d.memory_limit)});
    }
    table.print(out_);
  }

  void network() {
    if (e_.network.empty()) return;
    out_ << "\nnetwork\n";
    Table table({"from", "to", "values", "bytes", "expected", "the longest"}, most_ ? most_ : 10);
    for (const auto& transfer : e_.network) {
      const auto& longest = e_.copies[index(transfer.copies.front())];
      table.add({e_.devices[index(transfer.from)].task, e_.devices[index(transfer.to)].task,
                 std::to_string(transfer.copies.size()), bytes_text(transfer.bytes),
                 seconds_text(transfer.seconds), longest.value});
    }
    table.print(out_);
  }

  template <class Entries>
  void list(const char* title, const Entries& entries) {
    if (entries.empty()) return;
    out_ << '\n' << title << '\n';
    constexpr std::size_t kMax = 10;
    for (std::size_t i = 0; i < entries.size() && i < kMax; ++i)
      out_ << "  " << i + 1 << ". " << entries[i].text << '\n';
    if (entries.size() > kMax) out_ << "  … and " << entries.size() - kMax << " more\n";
  }

  void host_reads() {
    if (e_.host_reads.empty()) return;
    double seconds = 0;
    Table table({"value", "from", "bytes"}, 10);
    for (const int c : e_.host_reads) {
      const auto& copy = e_.copies[index(c)];
      seconds += copy.seconds * copy.per_step;
      table.add({copy.value, device(copy.from), bytes_text(copy.bytes)});
    }
    out_ << "\nsmall values read back to the host: " << e_.host_reads.size() << " a step, "
         << seconds_text(seconds) << " on the way\n";
    table.print(out_);
  }

  void copies() {
    if (e_.copies.empty()) return;
    out_ << "\ncopies\n";
    const bool measured = e_.measured_step.has_value();
    std::vector<std::string> head{"value", "from", "to", "bytes", "a step", "expected"};
    if (measured) head.push_back("measured");
    head.push_back("for");
    Table table(std::move(head), most_);
    for (const auto& copy : e_.copies) {
      std::ostringstream often;
      often << copy.per_step;
      if (!copy.loop.empty()) often << " an iteration of " << copy.loop;
      std::vector<std::string> row{copy.value,
                                   device(copy.from),
                                   device(copy.to),
                                   copy.bytes > 0 ? bytes_text(copy.bytes) : "?",
                                   std::move(often).str(),
                                   seconds_text(copy.seconds)};
      if (measured) row.push_back(copy.measured ? seconds_text(*copy.measured) : "-");
      row.push_back(readers_text(e_, copy, 1));
      table.add(std::move(row));
    }
    table.print(out_);
  }

  void ops() {
    out_ << "\nops\n";
    const bool measured = e_.measured_step.has_value();
    std::vector<std::string> head{"node", "op", "device", "expected"};
    if (measured) head.push_back("measured");
    head.push_back("why there");
    Table table(std::move(head), most_);
    bool starred = false;
    const auto add = [&](const Explanation::Op& op) {
      const bool modelled = op.seconds > 0 && !op.cost_measured;
      std::vector<std::string> row{
          op.name, op.op, device(op.device),
          op.seconds > 0 ? seconds_text(op.seconds) + (modelled ? "*" : "") : "-"};
      if (measured) row.push_back(op.measured ? seconds_text(op.measured->seconds) : "-");
      std::string why = op.reason;
      for (const std::string& refused : op.refused) why += "; " + refused;
      row.push_back(std::move(why));
      starred |= table.add(std::move(row)) && modelled;
    };
    // Constants last: there are many, and they follow their users.
    for (const bool constants : {false, true}) {
      for (const auto& op : e_.ops) {
        if (op.is_constant == constants) add(op);
      }
    }
    table.print(out_);
    if (starred) out_ << "  * modelled, not measured\n";
  }

  void kernels() {
    Table table({"node", "problem", "kernel", "candidates", "why"}, most_);
    bool any = false;
    for (const auto& op : e_.ops) {
      if (!op.kernel) continue;
      any = true;
      table.add({op.name, op.kernel->problem, op.kernel->chosen, candidates_text(*op.kernel),
                 op.kernel->reason});
    }
    if (!any) return;
    out_ << "\nkernels with several implementations\n";
    table.print(out_);
  }

  const Explanation& e_;
  const std::size_t most_;
  std::ostringstream out_;
};

}  // namespace

std::string Explanation::to_text(std::size_t most_rows) const {
  return TextWriter(*this, most_rows)();
}

}  // namespace tandem

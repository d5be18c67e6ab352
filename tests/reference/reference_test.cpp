// Runs the stored reference cases through Tandem and compares; README.md describes what it prints
// and takes.

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/reference/adapter.h"
#include "tests/reference/case.h"
#include "tests/reference/check.h"
#include "tests/reference/shapes.h"

namespace {

namespace fs = std::filesystem;
using reference::Case;

constexpr const char* kUsage =
    R"(usage: reference_test [--data FOLDER] [--pending FILE] [--family NAME]... [--filter TEXT]
                      [--every N] [--class CLASS] [--except FILE] [--only PART]... [--report FILE] [--list-missing] [--verbose]

  --data FOLDER    where FAMILY.jsonl.gz lie (tests/reference/data)
  --pending FILE   ops that may be missing (pending.txt beside that folder)
  --family NAME    only this file of cases; may be repeated
  --filter TEXT    only cases whose line or id has this text
  --every N        only one case of N, always the same
  --class CLASS    only cases for whose types there is a kernel of this class, such as cuda
  --except FILE    lines "ID reason" or "FAMILY/OP reason": cases that this class answers otherwise,
                   left out
  --only PART      of eager, traced and shapes only these; may be repeated
  --report FILE    appends "CASES FAILED" to this file
  --list-missing   names the ops of the cases that the registry lacks, and does nothing else
  --verbose        names each case before it runs, and cuts no message short
)";

struct Options {
  fs::path data = "tests/reference/data";
  fs::path pending;
  std::set<std::string> families;
  std::string filter, kernel_class;
  std::set<std::string> exceptions;  // ids of cases, or FAMILY/OP
  std::size_t every = 1;
  std::set<std::string> parts;
  fs::path report;
  bool list_missing = false, verbose = false;
};

[[noreturn]] void wrong_usage(const std::string& why) {
  std::cerr << "reference_test: " << why << "\n" << kUsage;
  std::exit(2);
}

/// The first word of each line; # begins a comment.
std::set<std::string> read_first_words(const fs::path& path) {
  std::set<std::string> words;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::string line;
  while (std::getline(file, line)) {
    const std::string word = line.substr(0, line.find_first_of(" #"));
    if (!word.empty()) words.insert(word);
  }
  return words;
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == arguments.size()) wrong_usage(name + " needs a value");
      return arguments[++i];
    };
    if (name == "--data")
      options.data = value();
    else if (name == "--pending")
      options.pending = value();
    else if (name == "--family")
      options.families.insert(value());
    else if (name == "--filter")
      options.filter = value();
    else if (name == "--class")
      options.kernel_class = value();
    else if (name == "--except")
      options.exceptions = read_first_words(value());
    else if (name == "--every")
      options.every = std::strtoul(value().c_str(), nullptr, 10);
    else if (name == "--only")
      options.parts.insert(value());
    else if (name == "--report")
      options.report = value();
    else if (name == "--list-missing")
      options.list_missing = true;
    else if (name == "--verbose")
      options.verbose = true;
    else
      wrong_usage("unknown argument " + name);
  }
  const std::set<std::string> parts{"eager", "traced", "shapes"};
  for (const std::string& part : options.parts) {
    if (!parts.count(part)) wrong_usage("there is no part " + part);
  }
  if (options.parts.empty()) options.parts = parts;
  if (options.every == 0) wrong_usage("--every needs a number above zero");
  if (options.pending.empty()) options.pending = options.data.parent_path() / "pending.txt";
  return options;
}

/// Op names, one a line; # begins a comment.
std::set<std::string> read_pending(const fs::path& path) {
  std::set<std::string> names;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::string line;
  while (std::getline(file, line)) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(
        std::remove_if(line.begin(), line.end(), [](unsigned char c) { return std::isspace(c); }),
        line.end());
    if (!line.empty()) names.insert(line);
  }
  return names;
}

std::vector<Case> read_all(const Options& options) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(options.data)) {
    const std::string name = entry.path().filename().string();
    const std::size_t end = name.find(".jsonl.gz");
    if (end == std::string::npos || name.rfind("keras_", 0) == 0) continue;
    if (options.families.empty() || options.families.count(name.substr(0, end)))
      paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw std::runtime_error("no cases in " + options.data.string());
  std::vector<Case> cases;
  std::size_t number = 0;
  for (const fs::path& path : paths) {
    for (Case& c : reference::read_cases(path)) {
      const bool wanted = c.line.find(options.filter) != std::string::npos ||
                          c.id.find(options.filter) != std::string::npos;
      if (number++ % options.every == 0 && wanted) cases.push_back(std::move(c));
    }
  }
  return cases;
}

struct Count {
  std::size_t cases = 0, failed = 0;
};

class Run {
 public:
  explicit Run(const Options& options)
      : options_(options), pending_(read_pending(options.pending)) {}

  void all(const std::vector<Case>& cases) {
    for (const Case& c : cases) one(c);
    for (const std::string& name : pending_) {
      if (!reference::has_op(name)) continue;
      fail(name + " is registered, so it must leave " + options_.pending.string());
    }
  }

  /// The closing lines; returns true if nothing failed.
  bool finish() const {
    if (std::any_of(by_op_.begin(), by_op_.end(),
                    [](const auto& op) { return op.second.failed > 0; })) {
      std::cout << "by op:\n";
      for (const auto& [op, count] : by_op_) {
        if (count.failed > 0)
          std::cout << "  " << op << ": " << count.failed << " of " << count.cases << " failed\n";
      }
    }
    if (!missing_.empty()) std::cout << "ops that are not registered:" << joined(missing_) << "\n";
    if (pending_cases_ > 0) {
      std::cout << pending_cases_ << " cases wait for ops in " << options_.pending.string() << ":"
                << joined(waiting_) << "\n";
    }
    if (!options_.report.empty()) {
      std::ofstream(options_.report, std::ios::app) << count_.cases << " " << count_.failed << "\n";
    }
    std::cout << "conformance: " << count_.cases << " cases, " << count_.failed << " failed"
              << std::endl;
    return count_.failed == 0;
  }

 private:
  static std::string joined(const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += " " + name;
    return text;
  }

  void fail(const std::string& text) {
    ++count_.failed;
    std::cout << "FAILED " << text << std::endl;
  }

  std::vector<std::string> problems_of(const Case& c) const {
    std::vector<std::string> problems;
    if (options_.parts.count("eager")) problems = reference::check(c, reference::Mode::kEager);
    if (options_.parts.count("traced")) {
      for (const std::string& problem : reference::check(c, reference::Mode::kTraced)) {
        problems.push_back("traced: " + problem);
      }
    }
    if (options_.parts.count("shapes")) {
      for (std::string& problem : reference::check_shapes(c))
        problems.push_back(std::move(problem));
    }
    return problems;
  }

  void one(const Case& c) {
    if (!options_.kernel_class.empty() && !reference::has_kernel(c.call, options_.kernel_class)) {
      return;
    }
    if (options_.exceptions.count(c.id) || options_.exceptions.count(c.family + "/" + c.call.op))
      return;
    if (!reference::has_op(c.call.op)) {
      if (pending_.count(c.call.op)) {
        waiting_.insert(c.call.op);
        ++pending_cases_;
        return;
      }
      missing_.insert(c.call.op);
      ++count_.cases;
      ++count_.failed;
      Count& count = by_op_[c.call.op];
      ++count.cases;
      ++count.failed;
      return;
    }
    if (options_.verbose) std::cout << c.id << "  " << c.line << std::endl;
    const std::vector<std::string> problems = problems_of(c);
    ++count_.cases;
    Count& count = by_op_[c.call.op];
    ++count.cases;
    if (problems.empty()) return;
    ++count.failed;
    fail(c.family + ": " + c.line + "  (" + c.id + ")");
    for (const std::string& problem : problems) {
      std::cout << "    " << (options_.verbose ? problem : problem.substr(0, 400)) << "\n";
    }
  }

  const Options& options_;
  std::set<std::string> pending_, missing_, waiting_;
  std::map<std::string, Count> by_op_;
  Count count_;
  std::size_t pending_cases_ = 0;
};

int list_missing(const std::vector<Case>& cases) {
  std::map<std::string, std::size_t> missing;
  for (const Case& c : cases) {
    if (!reference::has_op(c.call.op)) ++missing[c.call.op];
  }
  for (const auto& [name, count] : missing) std::cout << name << " " << count << "\n";
  std::cerr << missing.size() << " ops of the cases are not registered\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse({argv + 1, argv + argc});
  try {
    const std::vector<Case> cases = read_all(options);
    if (cases.empty()) throw std::runtime_error("no case has the text '" + options.filter + "'");
    if (options.list_missing) return list_missing(cases);
    Run run(options);
    run.all(cases);
    return run.finish() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "reference_test: " << error.what() << "\n";
    return 1;
  }
}

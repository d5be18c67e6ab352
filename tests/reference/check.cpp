#include "tests/reference/check.h"

#include <exception>

#include "tests/reference/numeric.h"

namespace reference {
namespace {

using Problems = std::vector<std::string>;

// A gradient adds up rounding errors of more than one op.
constexpr double kGradientFactor = 5;
constexpr double kSecondFactor = 20;

std::string count_problem(const std::string& what, std::size_t got, std::size_t want) {
  return what + ": got " + std::to_string(got) + ", want " + std::to_string(want);
}

void compare_outputs(const Case& c, const std::vector<Value>& got, const std::vector<Value>& want,
                     const std::string& what, Problems& problems) {
  if (got.size() != want.size()) {
    problems.push_back(count_problem("number of " + what + "s", got.size(), want.size()));
    return;
  }
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (c.ignores(i)) continue;
    const std::string text = difference(got[i], want[i], c.tolerance(want[i].dtype));
    if (!text.empty()) problems.push_back(what + " " + std::to_string(i) + ": " + text);
  }
}

/// An empty dtype on either side says "no gradient", or "not set" of a variable.
void compare_optional(const Case& c, const std::vector<Value>& got, const std::vector<Value>& want,
                      double factor, const std::string& what, Problems& problems) {
  if (got.size() != want.size()) {
    problems.push_back(count_problem("number of " + what + "s", got.size(), want.size()));
    return;
  }
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::string name = what + " " + std::to_string(i) + ": ";
    if (got[i].dtype.empty() != want[i].dtype.empty()) {
      problems.push_back(name + (want[i].dtype.empty() ? "there is one, want none"
                                                       : "there is none, want " + want[i].type()));
      continue;
    }
    if (want[i].dtype.empty()) continue;
    Tolerance tolerance = c.tolerance(want[i].dtype, factor);
    tolerance.exact = tolerance.exact && factor == 1;
    const std::string text = difference(got[i], want[i], tolerance);
    if (!text.empty()) problems.push_back(name + text);
  }
}

void check_error(const Case& c, Mode mode, Problems& problems) {
  try {
    run(c.call, mode);
    problems.push_back("no error, want " + c.error);
  } catch (const Refusal& refusal) {
    if (refusal.code().empty()) {
      problems.push_back(std::string("an exception of another family: ") + refusal.what());
    } else if (refusal.code() != c.error && !c.any_code) {
      problems.push_back("error " + refusal.code() + ", want " + c.error + ": " + refusal.what());
    }
  }
}

void check_gradients(const Case& c, Mode mode, Problems& problems) {
  const Gradients got =
      differentiate(c.call, c.upstream, c.second ? &c.second->upstream : nullptr, mode);
  compare_outputs(c, got.outputs, c.outputs, "output", problems);
  compare_optional(c, got.gradients, c.gradients, kGradientFactor, "gradient", problems);
  if (c.second) {
    compare_optional(c, got.second, c.second->gradients, kSecondFactor, "second gradient",
                     problems);
    compare_optional(c, got.towards_upstream, c.second->towards_upstream, kSecondFactor,
                     "second gradient towards upstream", problems);
  }
  if (mode == Mode::kTraced) return;
  const std::string text = numeric_difference(c);
  if (!text.empty()) problems.push_back("numeric: " + text);
}

void check_values(const Case& c, Mode mode, Problems& problems) {
  const Result got = run(c.call, mode);
  compare_outputs(c, got.outputs, c.outputs, "output", problems);
  if (c.variables) compare_optional(c, got.variables, *c.variables, 1, "variable", problems);
}

void check_runs(const Case& c, Mode mode, Problems& problems) {
  const auto got = run_afresh(c.call, static_cast<int>(c.runs.size()), mode);
  for (std::size_t i = 0; i < c.runs.size(); ++i) {
    compare_outputs(c, got.at(i), c.runs[i], "run " + std::to_string(i) + ", output", problems);
  }
}

}  // namespace

std::vector<std::string> check(const Case& c, Mode mode) {
  Problems problems;
  try {
    if (!c.error.empty())
      check_error(c, mode, problems);
    else if (!c.runs.empty())
      check_runs(c, mode, problems);
    else if (c.has_gradients())
      check_gradients(c, mode, problems);
    else
      check_values(c, mode, problems);
  } catch (const Refusal& refusal) {
    problems.push_back("error " + refusal.code() + ": " + refusal.what());
  } catch (const std::exception& error) {
    problems.push_back(std::string("exception: ") + error.what());
  }
  return problems;
}

}  // namespace reference

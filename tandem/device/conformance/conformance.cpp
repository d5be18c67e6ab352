#include "tandem/device/conformance/conformance.h"

#include <algorithm>
#include <optional>

#include "tandem/device/conformance/internal/cases.h"

namespace tandem {
namespace {

using conformance::Case;
using Outcome = CaseResult::Outcome;

bool names(const ExpectedFailure& entry, std::string_view name) {
  if (entry.name.ends_with("/*")) {
    return name.starts_with(std::string_view(entry.name).substr(0, entry.name.size() - 1));
  }
  return entry.name == name;
}

std::optional<std::string> failure_of(const Case& c, const conformance::Lab& lab) {
  try {
    c.run(lab);
    return std::nullopt;
  } catch (const conformance::CaseFailure& failure) {
    return failure.what();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    return cat("throws ", code_name(code_of(error)), ": ", message_of(error));
  }
}

CaseResult run_case(const Case& c, const conformance::Lab& lab) {
  const auto& cannot = lab.options().cannot;
  const auto listed = std::find_if(cannot.begin(), cannot.end(), [&](const ExpectedFailure& entry) {
    return names(entry, c.name);
  });
  const std::optional<std::string> failure = failure_of(c, lab);
  if (listed == cannot.end()) {
    if (failure) return {c.name, Outcome::kFailed, *failure};
    return {c.name, Outcome::kPassed, {}};
  }
  if (failure) return {c.name, Outcome::kCannot, listed->reason};
  return {c.name, Outcome::kFailed,
          cat("passes, though listed as a case that cannot: \"", listed->reason,
              "\". Take the entry out")};
}

}  // namespace

std::vector<CaseResult> run_conformance(Backend& backend, const ConformanceOptions& options) {
  std::vector<Case> cases;
  conformance::add_allocation_cases(cases);
  conformance::add_limit_cases(cases);
  conformance::add_copy_cases(cases);
  conformance::add_stream_cases(cases);
  conformance::add_event_cases(cases);
  conformance::add_failure_cases(cases);
  conformance::add_lifetime_cases(cases);

  std::vector<CaseResult> results;
  for (const ExpectedFailure& entry : options.cannot) {
    if (std::none_of(cases.begin(), cases.end(),
                     [&](const Case& c) { return names(entry, c.name); })) {
      results.push_back({entry.name, Outcome::kFailed, "is listed, but there is no such case"});
    }
  }
  const conformance::Lab lab(backend, options);
  for (const Case& c : cases) {
    if (std::string_view(c.name).find(options.only) == std::string_view::npos) continue;
    if (options.begin) options.begin(c.name);
    results.push_back(run_case(c, lab));
  }
  return results;
}

bool all_passed(const std::vector<CaseResult>& results) {
  return std::none_of(results.begin(), results.end(),
                      [](const CaseResult& r) { return r.outcome == Outcome::kFailed; });
}

std::string describe(const std::vector<CaseResult>& results) {
  std::string text;
  int counts[3] = {};
  for (const CaseResult& r : results) {
    ++counts[static_cast<int>(r.outcome)];
    if (r.outcome == Outcome::kFailed) text += cat(r.name, ": ", r.text, "\n");
    if (r.outcome == Outcome::kCannot) text += cat(r.name, " (cannot): ", r.text, "\n");
  }
  return text + cat(counts[0], " passed, ", counts[1], " failed, ", counts[2], " cannot\n");
}

}  // namespace tandem

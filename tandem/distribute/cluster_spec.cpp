#include "tandem/distribute/cluster_spec.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Calls `each` with what stands between separators.
template <class Each>
void split(std::string_view text, char separator, Each each) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    each(trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
}

void check_job(std::string_view job) {
  const bool fits = !job.empty() && std::isalpha(static_cast<unsigned char>(job.front())) &&
                    std::all_of(job.begin(), job.end(), [](char c) {
                      return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
                    });
  if (!fits) {
    throw InvalidArgumentError(cat("'", job, "' is no name of a job: it has to begin with a ",
                                   "letter and consist of letters, digits and '_'."));
  }
}

void check_address(std::string_view job, std::string_view address) {
  if (address.starts_with("unix:") && address.size() > 5) return;
  const std::size_t colon = address.rfind(':');
  const std::string_view port =
      colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
  const bool fits =
      colon != 0 && !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(),
                  [](char c) { return std::isdigit(static_cast<unsigned char>(c)); }) &&
      std::stoi(std::string(port)) <= 65535;
  if (!fits) {
    throw InvalidArgumentError(
        cat("'", address, "' of job '", job, "' is no address: write HOST:PORT or unix:PATH."));
  }
}

}  // namespace

ClusterSpec::ClusterSpec(Jobs jobs) : jobs_(std::move(jobs)) {
  for (const auto& [job, tasks] : jobs_) {
    check_job(job);
    for (const auto& [task, address] : tasks) {
      if (task < 0) throw InvalidArgumentError(cat("Job '", job, "' has a task ", task, "."));
      check_address(job, address);
    }
  }
}

ClusterSpec ClusterSpec::parse(StringView text) {
  Jobs jobs;
  split(text, ';', [&](std::string_view part) {
    if (part.empty()) return;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      throw InvalidArgumentError(cat("'", part, "' names no job: a cluster is ",
                                     "JOB=HOST:PORT[,HOST:PORT...][;JOB=...]."));
    }
    const std::string job(trimmed(part.substr(0, equals)));
    const auto [tasks, is_new] = jobs.try_emplace(job);
    if (!is_new) throw InvalidArgumentError(cat("Job '", job, "' is given twice."));
    int number = 0;
    split(part.substr(equals + 1), ',', [&number, &addresses = tasks->second](std::string_view a) {
      addresses.emplace(number++, std::string(a));
    });
  });
  if (jobs.empty()) {
    throw InvalidArgumentError(
        cat("'", text, "' has no jobs: a cluster is JOB=HOST:PORT[,HOST:PORT...][;JOB=...]."));
  }
  return ClusterSpec(std::move(jobs));
}

int ClusterSpec::num_tasks(StringView job) const {
  const auto found = jobs_.find(std::string_view(job));
  return found == jobs_.end() ? 0 : static_cast<int>(found->second.size());
}

const std::string& ClusterSpec::address(StringView job, int task) const {
  const auto found = jobs_.find(std::string_view(job));
  if (found != jobs_.end()) {
    const auto at = found->second.find(task);
    if (at != found->second.end()) return at->second;
  }
  throw NotFoundError(
      cat("The cluster has no task ", task, " of job '", job, "'; it is ", to_string(), "."));
}

void ClusterSpec::set_address(const String& job, int task, String address) {
  check_job(job);
  if (task < 0)
    throw InvalidArgumentError(
        cat("Job '", job, "' cannot have a task ", task, ": they count from 0."));
  check_address(job, address);
  jobs_[job][task] = std::move(address);
}

std::string ClusterSpec::to_string() const {
  std::string text;
  for (const auto& [job, tasks] : jobs_) {
    text += cat(text.empty() ? "" : ";", job, "=");
    int next = 0;
    for (const auto& [task, address] : tasks) {
      if (next > 0) text += ',';
      if (task != next) text += cat(task, ":");
      text += address;
      next = task + 1;
    }
  }
  return text;
}

}  // namespace tandem::distribute

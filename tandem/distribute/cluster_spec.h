#pragma once

#include <map>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"

namespace tandem::distribute {

/// Which tasks a cluster has, and where: for each job the addresses ("host:port") of its tasks by
/// number.
///
///     auto cluster = ClusterSpec::parse("ps=h1:2222,h2:2222;worker=h3:2222");
///     cluster.address("ps", 1)   // "h2:2222"
///
/// A value; throws InvalidArgumentError for malformed text, names or addresses.
class TANDEM_EXPORT ClusterSpec {
 public:
  using Tasks = std::map<int, std::string>;
  using Jobs = std::map<std::string, Tasks, std::less<>>;

  ClusterSpec() = default;
  explicit ClusterSpec(Jobs jobs);
  /// "JOB=ADDRESS[,ADDRESS…][;JOB=…]"; tasks are numbered from 0.
  static ClusterSpec parse(StringView text);

  const Jobs& jobs() const { return jobs_; }
  bool empty() const { return jobs_.empty(); }
  int num_tasks(StringView job) const;
  /// Throws NotFoundError, naming the tasks that there are.
  const std::string& address(StringView job, int task) const;
  void set_address(const String& job, int task, String address);
  /// As `parse` takes it; tasks that are left out of the numbering are "3:ADDRESS".
  std::string to_string() const;
  bool operator==(const ClusterSpec&) const = default;

 private:
  Jobs jobs_;
};

}  // namespace tandem::distribute

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/parameters/parameter_store.h"
#include "tandem/distribute/internal/rpc/method_table.h"

namespace tandem::distribute {

/// The variables that a task holds: its own, and those of other parameter servers of which it is a
/// replica. Thread-safe.
class ParameterServer {
 public:
  struct Options {
    std::string task;
    /// For its own variables, with a sub-folder for those of each other task; empty: none.
    std::string folder = {};
    int replicas = 1;  ///< tasks that should hold each variable, this one included
    std::function<Channel*(const std::string& task)> channel = {};
    UpdateLog::RunLater run_later = {};  ///< of its logs
    StateSizes sizes = {};
  };
  /// Throws DataLossError if what the folder holds is damaged.
  explicit ParameterServer(Options options);
  ~ParameterServer() { close(); }
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  /// This must outlive the table's calls.
  void add_to(MethodTable& methods);
  /// Ends the calls that wait for others.
  void close();
  ParameterStore::Figures figures() const;

 private:
  std::shared_ptr<ParameterStore> find(const std::string& home) const;
  std::shared_ptr<ParameterStore> add(const std::string& home);
  std::vector<std::shared_ptr<ParameterStore>> stores() const;
  void describe(const ReplyDone& done) const;

  const Options options_;
  const std::string incarnation_;  // of this process
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<ParameterStore>> stores_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute

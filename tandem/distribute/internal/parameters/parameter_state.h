#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/distribute/internal/parameters/server_update.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// A push of gradients; its message's views are into `request`.
struct Push {
  Bytes request;
  proto::PushRequest message;
  ReplyDone done = {};  ///< of the call; empty for one out of a record
};
using Pushes = std::vector<std::shared_ptr<Push>>;

/// What a parameter server knows of one training: variables with the optimizer's state, and which
/// pushes are in them. Records change it: equal states that apply equal records stay equal, on
/// whichever task, which is what logs and replicas rest on. A value; not thread-safe.
struct ParameterState {
  struct Applied {
    std::int64_t below = 0;  // all of these
    std::set<std::int64_t> above;
    bool contains(std::int64_t number) const { return number < below || above.contains(number); }
  };

  std::string id;  ///< empty: there is none
  proto::OptimizerSpec optimizer;
  int replicas_to_aggregate = 0;
  std::int64_t max_staleness = 0;
  std::int64_t version = 0;   ///< updates that were applied
  std::int64_t position = 0;  ///< records that were applied
  /// That of the view in which the last of them was applied first. States of one training that are equal
  /// in position and epoch are equal, if the epoch is above 0.
  std::int64_t epoch = 0;
  std::map<std::string, Parameter> parameters;
  std::map<std::string, Applied> applied;  ///< by coordinator

  /// Applies pushes as one update, the mean of their gradients. Throws InvalidArgumentError, and
  /// changes nothing, if a gradient or another change does not fit its variable.
  void apply(const Pushes& group);
  void apply(const proto::TrainingSettings& settings);
  /// Applies a serialized UpdateRecord. A view in it is not looked at.
  void apply_record(const Bytes& record);

  /// Throws InvalidArgumentError if there is none.
  const Parameter& find(const std::string& name) const;

  void add_applied(const std::vector<proto::SavedCoordinator>& coordinators);
  std::uint64_t num_bytes() const;

  /// As earlier versions have written it.
  static ParameterState of_snapshot(const proto::ParameterSnapshot& snapshot);
};

/// The record of a group that is applied in a view of that epoch.
Bytes record_of(const Pushes& group, std::int64_t epoch);

}  // namespace tandem::distribute

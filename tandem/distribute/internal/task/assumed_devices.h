#pragma once

#include <map>
#include <string>
#include <vector>

#include "tandem/distribute/proto/messages.h"
#include "tandem/placement/device_set.h"

// What planning assumes of a cluster. Tasks report which devices they have and how much memory, but
// not how fast these and the ways between them are.

namespace tandem::distribute {

/// Adds the devices of other tasks: CPUs as fast as `host`, accelerators as the set's first one of
/// their type or, without one, as a common one. Throws InvalidArgumentError for a name that is no
/// full name.
void add_assumed_devices(DeviceSet& set, const std::vector<proto::DeviceAttributes>& devices,
                         const DeviceModel& host);

/// Sets the machine of each task, by `addresses` ("host:port" by full name of the task; tasks that
/// are left out run on this machine), and what joins the machines. All devices must be there.
void assume_network(DeviceSet& set, const std::map<std::string, std::string>& addresses);

}  // namespace tandem::distribute

#include "tandem/distribute/internal/server/status_service.h"

#include <nlohmann/json.hpp>

#include "tandem/core/version.h"
#include "tandem/device/device.h"

namespace tandem::distribute {

void StatusService::add_to(MethodTable& methods) {
  methods.add(kStatusMethod, [this](const Bytes&, const CallContext&, const ReplyDone& done) {
    done({}, Bytes(status()));
  });
}

std::string StatusService::status() const {
  Worker& worker = master_.worker();
  nlohmann::json status;
  status["task"] = worker.task();
  status["version"] = TANDEM_VERSION_STRING;
  for (const auto& [job, tasks] : cluster_.jobs()) {
    for (const auto& [task, address] : tasks)
      status["cluster"][job][std::to_string(task)] = address;
  }
  status["uptime_s"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  status["running_steps"] = worker.steps().ids().size();
  status["devices"] = nlohmann::json::array();
  for (const auto& device : worker.runtime().devices()) {
    const MemoryStats memory = device->allocator().stats();
    status["devices"].push_back({{"name", device->name()},
                                 {"type", device->type()},
                                 {"incarnation", std::to_string(device->incarnation())},
                                 {"memory_used", memory.current},
                                 {"memory_peak", memory.peak},
                                 {"memory_limit", memory.limit}});
  }
  status["sessions"] = worker.sessions();
  status["master_sessions"] = nlohmann::json::array();
  for (const auto& session : master_.sessions()) {
    status["master_sessions"].push_back(
        {{"handle", session->handle()}, {"steps", session->num_steps()}});
  }
  return status.dump();
}

}  // namespace tandem::distribute

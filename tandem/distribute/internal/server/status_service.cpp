#include "tandem/distribute/internal/server/status_service.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <nlohmann/json.hpp>

#include "tandem/core/version.h"
#include "tandem/device/device.h"

namespace tandem::distribute {

void StatusService::add_to(MethodTable& methods) {
  methods_ = &methods;
  methods.add(kStatusMethod, [this](const Bytes&, const CallContext&, const ReplyDone& done) {
    done({}, Bytes(status()));
  });
}

std::string StatusService::metrics() const {
  const Worker& worker = master_.worker();
  const ParameterStore::Figures parameters = parameters_.figures();
  std::string text;
  const auto add = [&](const char* name, const char* type, const char* help, auto value,
                       const std::string& labels) {
    if (text.find(cat("# TYPE ", name, " ")) == std::string::npos)
      text += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
    text += cat(name, "{task=\"", worker.task(), "\"", labels, "} ", value, "\n");
  };
  const auto uptime =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - started_);
  add("tandem_uptime_seconds", "gauge", "Time since the server listens.", uptime.count(), "");
  add("tandem_running_steps", "gauge", "Steps in progress.", master_.worker().steps().ids().size(),
      "");
  add("tandem_sessions", "gauge", "Sessions of masters that this task takes part in.",
      worker.sessions().size(), "");
  add("tandem_parameter_updates_total", "counter", "Updates applied to parameters.",
      parameters.num_updates, "");
  add("tandem_parameter_bytes", "gauge", "Parameters and their optimizer state.", parameters.bytes,
      "");
  add("tandem_parameter_pushes_waiting", "gauge", "Pushes that wait for others.",
      parameters.num_waiting, "");
  for (const auto& device : worker.runtime().devices()) {
    add("tandem_device_memory_bytes", "gauge", "Memory in use by the device's allocator.",
        device->allocator().stats().current, cat(",device=\"", device->name(), "\""));
  }
  if (local_) {
    const LocalFigures local = local_();
    add("tandem_local_connections", "gauge", "Connections of clients on this machine.",
        local.connections, "");
    add("tandem_local_calls_total", "counter", "Calls taken over local connections.", local.calls,
        "");
    add("tandem_local_shared_bytes", "gauge", "Memory shared with tasks of this machine.",
        local.shared_bytes, "");
  }
  for (const auto& [method, calls] : methods_->unknown_calls()) {
    std::string name;  // a peer's, in which a label may not end
    std::copy_if(method.begin(), method.end(), std::back_inserter(name), [](unsigned char c) {
      return std::isalnum(c) || c == '.' || c == '/' || c == '_';
    });
    add("tandem_unimplemented_calls_total", "counter", "Calls of methods that are not served.",
        calls, cat(",method=\"", name, "\""));
  }
  return text;
}

std::string StatusService::status() const {
  Worker& worker = master_.worker();
  nlohmann::json status;
  status["task"] = worker.task();
  status["version"] = TANDEM_VERSION_STRING;
  const ClusterSpec cluster = peers_.cluster();
  for (const auto& [job, tasks] : cluster.jobs()) {
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
  const ParameterStore::Figures parameters = parameters_.figures();
  status["parameters"] = {{"count", parameters.num_parameters},
                          {"bytes", parameters.bytes},
                          {"updates", parameters.num_updates},
                          {"waiting", parameters.num_waiting},
                          {"durable", parameters.durable}};
  if (local_) {
    const LocalFigures local = local_();
    status["local"] = {{"connections", local.connections},
                       {"calls", local.calls},
                       {"shared_bytes", local.shared_bytes}};
  }
  return status.dump();
}

}  // namespace tandem::distribute

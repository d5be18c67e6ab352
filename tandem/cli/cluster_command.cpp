#include <iomanip>
#include <iostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tandem/cli/commands.h"
#include "tandem/cli/distribute_library.h"
#include "tandem/core/error.h"

namespace tandem::cli {
namespace {

nlohmann::ordered_json to_json(const distribute::TaskStatus& task) {
  nlohmann::ordered_json json{{"task", task.task}, {"address", task.address}};
  if (!task.error.empty()) {
    json["error"] = task.error;
    return json;
  }
  const nlohmann::json own = nlohmann::json::parse(task.json, nullptr, false);
  json["kind"] = own.is_object() ? "tandem" : "tensorflow";
  json["devices"] = nlohmann::json::array();
  for (const auto& device : task.devices) {
    json["devices"].push_back({{"name", device.name},
                               {"type", device.type},
                               {"incarnation", std::to_string(device.incarnation)},
                               {"memory_limit", device.memory_limit}});
  }
  if (!own.is_object()) return json;
  for (const char* field : {"version", "uptime_s", "running_steps", "sessions", "master_sessions"})
    json[field] = own.value(field, nlohmann::json());
  for (const char* field : {"devices", "local"}) {
    if (own.contains(field)) json[field] = own[field];
  }
  return json;
}

std::string megabytes(double bytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << bytes / 1e6 << " MB";
  return text.str();
}

void print(const distribute::TaskStatus& task) {
  std::cout << task.task << " at " << task.address << ": ";
  if (!task.error.empty()) {
    std::cout << "does not answer: " << task.error.substr(0, task.error.find('\n')) << '\n';
    return;
  }
  const nlohmann::json own = nlohmann::json::parse(task.json, nullptr, false);
  if (!own.is_object()) {
    std::cout << "TensorFlow\n";
    for (const auto& device : task.devices) std::cout << "  " << device.name << '\n';
    return;
  }
  std::cout << "tandem " << own.value("version", "?") << ", up "
            << static_cast<std::int64_t>(own.value("uptime_s", 0.0)) << " s, "
            << own.value("sessions", nlohmann::json::array()).size() << " sessions, "
            << own.value("running_steps", 0) << " running steps\n";
  for (const auto& device : own.value("devices", nlohmann::json::array())) {
    std::cout << "  " << device.value("name", "?") << ", incarnation "
              << device.value("incarnation", "?") << ", "
              << megabytes(device.value("memory_used", 0.0)) << " in use, "
              << megabytes(device.value("memory_peak", 0.0)) << " at most\n";
  }
  for (const auto& session : own.value("master_sessions", nlohmann::json::array())) {
    std::cout << "  session " << session.value("handle", "?") << ", " << session.value("steps", 0)
              << " running steps\n";
  }
}

}  // namespace

void show_cluster_status(const ClusterStatusArguments& arguments) {
  const auto tasks = distribute_library().cluster_status(
      arguments.target, {arguments.tls_cert, arguments.tls_key, arguments.tls_ca, true});
  if (arguments.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const auto& task : tasks) all.push_back(to_json(task));
    std::cout << all.dump() << '\n';
    return;
  }
  for (const auto& task : tasks) print(task);
}

}  // namespace tandem::cli

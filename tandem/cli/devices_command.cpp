#include <unistd.h>

#include <cstdint>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tandem/cli/commands.h"
#include "tandem/runtime/runtime.h"

namespace tandem::cli {
namespace {

// Bytes that a device may use, and who set that.
struct Memory {
  std::uint64_t bytes = 0;
  const char* from = "";
};

Memory memory_of(Device& device) {
  if (const std::size_t limit = device.allocator().stats().limit) return {limit, "limit"};
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  return {static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page), "the machine's"};
}

std::string gib(std::uint64_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1)
      << static_cast<double>(bytes) / static_cast<double>(std::uint64_t{1} << 30) << " GiB";
  return std::move(out).str();
}

void print_json(const Runtime& runtime) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& device : runtime.devices()) {
    const Memory memory = memory_of(*device);
    list.push_back({{"name", device->name()},
                    {"type", device->type()},
                    {"kernel_class", device->kernel_class()},
                    {"description", device->properties().description},
                    {"memory_bytes", memory.bytes},
                    {"settings",
                     {{"memory", {{"from", memory.from}}},
                      {"intra_op_threads",
                       {{"value", runtime.intra_op_pool().threads()}, {"from", "default"}}},
                      {"inter_op_threads",
                       {{"value", runtime.inter_op_pool().threads()}, {"from", "default"}}}}}});
  }
  std::cout << list.dump(2) << '\n';
}

void print_lines(const Runtime& runtime) {
  for (const auto& device : runtime.devices()) {
    const Memory memory = memory_of(*device);
    std::cout << device->name() << "  " << device->type() << "  memory " << gib(memory.bytes)
              << " (" << memory.from << ")  threads " << runtime.intra_op_pool().threads()
              << " intra-op (default), " << runtime.inter_op_pool().threads()
              << " inter-op (default)  " << device->properties().description << '\n';
  }
}

}  // namespace

void add_devices_command(CLI::App& td) {
  CLI::App* command = td.add_subcommand("devices", "List the devices and what is set for each");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print as JSON, for programs");
  command->callback([json] {
    if (*json) {
      print_json(Runtime::current());
    } else {
      print_lines(Runtime::current());
    }
  });
}

}  // namespace tandem::cli

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tandem/cli/commands.h"
#include "tandem/cli/op_description.h"
#include "tandem/runtime/runtime.h"

namespace tandem::cli {
namespace {

struct OpsOptions {
  std::string name;
  bool json = false;
};

void print_one(const Runtime& runtime, const OpsOptions& options) {
  const OpDef& op = runtime.ops().get(options.name);
  const auto kernels = runtime.kernels().all(op.name);
  if (options.json) {
    std::cout << op_json(op, kernels).dump(2) << '\n';
  } else {
    std::cout << op.to_string() << kernels_table(kernels);
  }
}

void print_all(const Runtime& runtime, const OpsOptions& options) {
  const auto ops = runtime.ops().all();
  if (options.json) {
    auto list = nlohmann::ordered_json::array();
    for (const OpDef* op : ops) list.push_back(op_json(*op, runtime.kernels().all(op->name)));
    std::cout << list.dump(2) << '\n';
    return;
  }
  std::vector<std::string> left;
  std::size_t width = 0;
  for (const OpDef* op : ops) {
    left.push_back(op->name + signature(*op));
    // A few long declarations must not push everything to the right.
    if (left.back().size() <= 60) width = std::max(width, left.back().size());
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    left[i].resize(std::max(width, left[i].size()), ' ');
    std::cout << left[i] << "  gradient: " << (has_gradient(*ops[i]) ? "yes" : "no ") << "  "
              << kernels_summary(runtime.kernels().all(ops[i]->name)) << '\n';
  }
}

}  // namespace

void add_ops_command(CLI::App& td) {
  CLI::App* command = td.add_subcommand("ops", "List the ops, or print the declaration of one");
  const auto options = std::make_shared<OpsOptions>();
  command->add_option("NAME", options->name, "The op to print");
  command->add_flag("--json", options->json, "Print as JSON, for programs");
  command->callback([options] {
    const Runtime& runtime = Runtime::current();
    if (options->name.empty()) {
      print_all(runtime, *options);
    } else {
      print_one(runtime, *options);
    }
  });
}

}  // namespace tandem::cli

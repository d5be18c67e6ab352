#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/cli/commands.h"
#include "tandem/cli/op_description.h"
#include "tandem/core/error.h"
#include "tandem/runtime/runtime.h"

namespace tandem::cli {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// An op by its name; where there is none, what was written may be a part of one.
const OpDef& find_op(const Runtime& runtime, const std::string& name) {
  constexpr int kMax = 12;
  if (const OpDef* op = runtime.ops().find(name)) return *op;
  std::string list;
  int found = 0;
  for (const OpDef* op : runtime.ops().all()) {
    if (lower(op->name) == lower(name)) return runtime.ops().get(name);  // throws: did you mean…
    if (lower(op->name).find(lower(name)) == std::string::npos) continue;
    if (++found <= kMax) list += (list.empty() ? "" : ", ") + op->name;
  }
  if (found == 0) return runtime.ops().get(name);
  if (found > kMax) list += cat(" and ", found - kMax, " more");
  throw NotFoundError(cat("There is no op '", name, "'. It is a part of the names of ", list, "."));
}

void print_one(const Runtime& runtime, const OpsArguments& arguments) {
  const OpDef& op = find_op(runtime, arguments.name);
  const auto kernels = runtime.kernels().all(op.name);
  if (arguments.json) {
    std::cout << op_json(op, kernels).dump(2) << '\n';
  } else {
    std::cout << op.to_string() << kernels_table(kernels);
  }
}

// Whether devices of a class run the op; kernels of class * serve every device.
bool has_kernel(const std::vector<const KernelDecl*>& kernels, const std::string& kernel_class) {
  return std::any_of(kernels.begin(), kernels.end(), [&](const KernelDecl* kernel) {
    return kernel->kernel_class == kernel_class || kernel->kernel_class == std::string_view("*");
  });
}

void print_all(const Runtime& runtime, const OpsArguments& arguments) {
  auto ops = runtime.ops().all();
  if (!arguments.kernel_class.empty()) {
    std::erase_if(ops, [&](const OpDef* op) {
      return !has_kernel(runtime.kernels().all(op->name), arguments.kernel_class);
    });
    if (ops.empty()) {
      throw NotFoundError(cat("No op has a kernel of class '", arguments.kernel_class, "'."));
    }
  }
  if (arguments.json) {
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

void run_ops(const OpsArguments& arguments) {
  const Runtime& runtime = Runtime::current();
  if (arguments.name.empty()) {
    print_all(runtime, arguments);
  } else {
    print_one(runtime, arguments);
  }
}

}  // namespace tandem::cli

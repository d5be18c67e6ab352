#include "tandem/cli/op_description.h"

#include <algorithm>
#include <cstddef>
#include <iomanip>
#include <map>
#include <sstream>
#include <utility>

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

struct NamedSet {
  const char* name;
  DTypeSet types;
};
// Largest first; as declarations name them.
constexpr NamedSet kNamedSets[] = {
    {"all", kAllTypes},       {"pod", kPodTypes},           {"numbers", kNumberTypes},
    {"reals", kRealTypes},    {"integers", kIntegerTypes},  {"floats", kFloatTypes},
    {"signed", kSignedTypes}, {"unsigned", kUnsignedTypes}, {"complexes", kComplexTypes},
    {"index", kIndexTypes},
};

bool contains_all(const DTypeSet& set, const DTypeSet& wanted) {
  for (const DType t : members(wanted)) {
    if (!set.contains(t)) return false;
  }
  return true;
}

// Candidates in the order in which they are tried.
void sort_candidates(std::vector<const KernelDecl*>& kernels) {
  std::stable_sort(kernels.begin(), kernels.end(), [](const KernelDecl* a, const KernelDecl* b) {
    const std::string_view ca = a->kernel_class, cb = b->kernel_class;
    return ca != cb ? ca < cb : a->priority > b->priority;
  });
}

std::string constraints_text(const KernelDecl& kernel) {
  std::string text;
  for (const TypeConstraint& c : kernel.types) {
    if (!c.attr) continue;
    text += (text.empty() ? "" : "; ") + std::string(c.attr) + ": " + type_set_text(c.types);
  }
  return text.empty() ? "any" : text;
}

std::string type_text(const ArgDef& arg) {
  std::string type = !arg.type_list_attr.empty() ? arg.type_list_attr
                     : !arg.type_attr.empty()    ? arg.type_attr
                                                 : dtype_name(arg.dtype);
  if (!arg.number_attr.empty()) type = arg.number_attr + " * " + type;
  return arg.is_ref ? "Ref(" + type + ")" : type;
}

Json names(const DTypeSet& set) {
  Json list = Json::array();
  for (const DType t : members(set)) list.push_back(dtype_name(t));
  return list;
}

Json args_json(const std::vector<ArgDef>& args) {
  Json list = Json::array();
  for (const ArgDef& arg : args) list.push_back({{"name", arg.name}, {"type", type_text(arg)}});
  return list;
}

Json attr_json(const AttrDef& attr) {
  Json json{{"name", attr.name}, {"kind", attr.kind}};
  if (!attr.allowed_types.empty()) json["allowed"] = names(attr.allowed_types);
  if (!attr.allowed_strings.empty()) json["allowed"] = attr.allowed_strings;
  if (attr.has_minimum) json["minimum"] = attr.minimum;
  if (!attr.default_value.empty()) json["default"] = attr.default_value.to_string();
  json["inferred"] = attr.inferred;
  return json;
}

Json kernel_json(const KernelDecl& kernel) {
  Json types = Json::object();
  for (const TypeConstraint& c : kernel.types) {
    if (c.attr) types[c.attr] = names(c.types);
  }
  return {{"name", kernel.name},
          {"kernel_class", kernel.kernel_class},
          {"priority", kernel.priority},
          {"types", std::move(types)}};
}

}  // namespace

std::string signature(const OpDef& op) {
  const auto list = [](const std::vector<ArgDef>& args) {
    std::string text;
    for (const ArgDef& arg : args)
      text += (text.empty() ? "" : ", ") + arg.name + ": " + type_text(arg);
    return "(" + text + ")";
  };
  return list(op.inputs) + " -> " + list(op.outputs);
}

bool has_gradient(const OpDef& op) { return op.gradient && op.gradient != &not_differentiable; }

std::vector<DType> members(const DTypeSet& set) {
  std::vector<DType> types;
  for (int i = 1; i < kDTypeCount; ++i) {
    if (set.contains(static_cast<DType>(i))) types.push_back(static_cast<DType>(i));
  }
  return types;
}

std::string type_set_text(const DTypeSet& set) {
  if (set.empty()) return "any";
  std::string text;
  DTypeSet reported;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const NamedSet& named : kNamedSets) {
    if (contains_all(set, named.types) && !contains_all(reported, named.types)) {
      add(named.name);
      reported = reported | named.types;
    }
  }
  for (const DType t : members(set)) {
    if (!reported.contains(t)) add(dtype_name(t));
  }
  return text;
}

std::string kernels_summary(const std::vector<const KernelDecl*>& kernels) {
  // For each class and attribute, what some candidate takes; a candidate without a constraint takes
  // any.
  std::map<std::string, std::map<std::string, DTypeSet>> classes;
  for (const KernelDecl* kernel : kernels) {
    auto& attrs = classes[kernel->kernel_class];
    for (const TypeConstraint& c : kernel->types) {
      if (c.attr) attrs[c.attr] = attrs[c.attr] | c.types;
    }
  }
  std::string text;
  for (const auto& [kernel_class, attrs] : classes) {
    text += (text.empty() ? "" : "; ") + kernel_class + ":";
    if (attrs.empty()) text += " any";
    bool first = true;
    for (const auto& [attr, types] : attrs) {
      text += (first ? " " : "; ") + attr + " " + type_set_text(types);
      first = false;
    }
  }
  return text.empty() ? "none" : text;
}

std::string kernels_table(std::vector<const KernelDecl*> kernels) {
  sort_candidates(kernels);
  std::size_t width = 0;
  for (const KernelDecl* kernel : kernels)
    width = std::max(width, std::string(kernel->name).size());
  std::ostringstream out;
  for (const KernelDecl* kernel : kernels) {
    out << "  kernel: " << kernel->kernel_class << "  " << std::left
        << std::setw(static_cast<int>(width)) << kernel->name << "  priority " << std::right
        << std::setw(3) << kernel->priority << "  " << constraints_text(*kernel) << '\n';
  }
  if (kernels.empty()) out << "  kernel: none\n";
  return std::move(out).str();
}

Json op_json(const OpDef& op, const std::vector<const KernelDecl*>& kernels) {
  Json attrs = Json::array(), candidates = Json::array();
  for (const AttrDef& attr : op.attrs) attrs.push_back(attr_json(attr));
  auto sorted = kernels;
  sort_candidates(sorted);
  for (const KernelDecl* kernel : sorted) candidates.push_back(kernel_json(*kernel));
  return {{"name", op.name},
          {"inputs", args_json(op.inputs)},
          {"outputs", args_json(op.outputs)},
          {"attrs", std::move(attrs)},
          {"gradient", has_gradient(op)},
          {"stateful", op.traits.stateful},
          {"doc", op.doc},
          {"kernels", std::move(candidates)}};
}

}  // namespace tandem::cli

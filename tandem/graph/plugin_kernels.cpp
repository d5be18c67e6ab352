#include "tandem/graph/plugin_kernels.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/device/launched_memory.h"
#include "tandem/device/lost_device.h"
#include "tandem/device/memory_space.h"
#include "tandem/device/plugin_backend.h"
#include "tandem/graph/foreign_kernels.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/graph/reference.h"
#include "tandem/graph/tensor_float_32.h"

namespace tandem {
namespace {

// A KernelFn carries no data, so one function serves all kernels of plugins and finds the plugin's
// own by what it runs for.
struct Table {
  std::shared_mutex mutex;
  std::map<std::pair<std::string, std::string>, std::vector<const TandemKernel*>> by_class_and_op;
  // Each chains itself into a list of the process.
  std::deque<KernelRegistration> registrations;
  std::deque<FusesRegistration> fuses;
  std::deque<FusedCheckRegistration> fused_checks;
};

Table& table() {
  static auto* kernels = new Table;  // plugins are never unloaded
  return *kernels;
}

KernelContext& real(TandemKernelContext* context) {
  return *reinterpret_cast<KernelContext*>(context);
}

// Plug-ins of versions before 1.2 end before the second attribute.
bool has_second_attr(const TandemKernel& kernel) {
  return kernel.size >= sizeof(TandemKernel) && kernel.second_type_attr;
}

bool is_among(const KernelContext& context, const char* attr, const std::int32_t* types,
              std::size_t count) {
  const auto type = static_cast<std::int32_t>(context.type_attr(attr));
  return std::find(types, types + count, type) != types + count;
}

bool takes(const TandemKernel& kernel, const KernelContext& context) {
  if (kernel.type_attr && !is_among(context, kernel.type_attr, kernel.types, kernel.num_types)) {
    return false;
  }
  return !has_second_attr(kernel) ||
         is_among(context, kernel.second_type_attr, kernel.second_types, kernel.num_second_types);
}

DTypeSet set_of(const std::int32_t* numbers, std::size_t count) {
  DTypeSet types;
  for (std::size_t i = 0; i < count; ++i) {
    if (numbers[i] > 0 && numbers[i] < kDTypeCount) {
      types = types | DTypeSet{static_cast<DType>(numbers[i])};
    }
  }
  return types;
}

const TandemKernel& kernel_for(const KernelContext& context) {
  Table& all = table();
  std::shared_lock lock(all.mutex);
  const auto found = all.by_class_and_op.find({context.device().kernel_class(), context.op().name});
  if (found != all.by_class_and_op.end()) {
    for (const TandemKernel* kernel : found->second) {
      if (takes(*kernel, context)) return *kernel;
    }
  }
  throw InternalError(cat("No plugin has a kernel for ", context.op().name, " on kernel class ",
                          context.device().kernel_class(), '.'));
}

// Values of variables that the running kernel copies to new memory. They stay where they are: a
// description points to their sizes.
std::deque<Array>& replaced_values() {
  thread_local std::deque<Array> values;
  return values;
}

// Memory that the running kernel has asked for until it returns.
std::vector<Array>& temporaries() {
  thread_local std::vector<Array> all;
  return all;
}

std::string text_of(const TandemStatus& status) {
  return {status.message, strnlen(status.message, sizeof(status.message))};
}

void run_plugin_kernel(KernelContext& context) {
  const TandemKernel& kernel = kernel_for(context);
  TandemStatus status;
  status.size = sizeof(status);
  status.code = TANDEM_OK;
  status.message[0] = '\0';
  kernel.run(reinterpret_cast<TandemKernelContext*>(&context), &status);
  // Readers may let go of a replaced value before the device has copied it.
  for (const Array& value : replaced_values()) {
    if (!value.buffer()->unique()) keep_until_over(value.buffer());
  }
  replaced_values().clear();
  temporaries().clear();
  if (status.code == TANDEM_OK) return;
  if (status.code == TANDEM_UNAVAILABLE)
    throw UnavailableError(lost_text(context.device().name(), text_of(status)));
  const bool known = status.code > 0 && status.code <= static_cast<int>(Code::kUnauthenticated);
  throw_error(known ? static_cast<Code>(status.code) : Code::kUnknown, text_of(status));
}

// ---- What kernels ask for ----

void fail(TandemStatus* status, Code code, const std::string& text) {
  status->code = static_cast<std::int32_t>(code);
  const std::size_t length = std::min(text.size(), sizeof(status->message) - 1);
  std::memcpy(status->message, text.data(), length);
  status->message[length] = '\0';
}

// No exception crosses the interface.
template <class Body>
void guarded(TandemStatus* status, Body body) {
  try {
    body();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    fail(status, code_of(error), message_of(error));
  }
}

void describe(const Array& array, TandemTensor* tensor) {
  tensor->dtype = static_cast<std::int32_t>(array.dtype());
  tensor->rank = array.rank();
  tensor->dims = array.shape().data();
  tensor->data = array.raw_data();
  tensor->bytes = is_object(array.dtype()) ? 0 : array.num_bytes();
  // Plug-ins of versions before 1.3 end before it.
  if (tensor->size >= sizeof(TandemTensor)) tensor->on_host = array.on_host() ? 1 : 0;
}

void check_index(const KernelContext& c, const char* what, int index, int count) {
  if (index < 0 || index >= count) {
    throw InvalidArgumentError(
        cat("the kernel asks for ", what, ' ', index, " of ", c.op().name, ", which has ", count));
  }
}

void input(TandemKernelContext* context, std::int32_t index, TandemTensor* tensor,
           TandemStatus* status) {
  guarded(status, [&] {
    KernelContext& c = real(context);
    check_index(c, "input", index, c.num_inputs());
    describe(c.input(index), tensor);
  });
}

void allocate_output(TandemKernelContext* context, std::int32_t index, std::int32_t rank,
                     const std::int64_t* dims, TandemTensor* tensor, TandemStatus* status) {
  guarded(status, [&] {
    KernelContext& c = real(context);
    check_index(c, "output", index, c.num_outputs());
    if (rank < 0 || rank > Shape::kMaxRank) {
      throw InvalidArgumentError(cat("the kernel asks for an output of rank ", rank));
    }
    const Shape shape(std::span<const std::int64_t>(dims, static_cast<std::size_t>(rank)));
    describe(c.allocate_output(index, shape), tensor);
  });
}

template <class T>
const T* attr(TandemKernelContext* context, const char* name, TandemStatus* status) {
  const AttrValue* value = real(context).find_attr(name);
  const T* typed = value ? value->get_if<T>() : nullptr;
  if (!typed) {
    fail(status, Code::kNotFound,
         cat("the kernel reads attribute '", name, "' of ", real(context).op().name,
             value ? ", which is a " : ", which has none", value ? value->kind() : ""));
  }
  return typed;
}

template <class T, class Out>
void read_attr(TandemKernelContext* context, const char* name, Out* out, TandemStatus* status) {
  guarded(status, [&] {
    if (const T* value = attr<T>(context, name, status)) *out = static_cast<Out>(*value);
  });
}

void read_string(TandemKernelContext* context, const char* name, const char** out,
                 std::size_t* length, TandemStatus* status) {
  guarded(status, [&] {
    if (const auto* value = attr<std::string>(context, name, status)) {
      *out = value->c_str();
      *length = value->size();
    }
  });
}

template <class T>
void read_list(TandemKernelContext* context, const char* name, const T** out, std::size_t* count,
               TandemStatus* status) {
  guarded(status, [&] {
    if (const auto* values = attr<std::vector<T>>(context, name, status)) {
      *out = values->data();
      *count = values->size();
    }
  });
}

void read_type(TandemKernelContext* context, const char* name, std::int32_t* out,
               TandemStatus* status) {
  guarded(status, [&] { *out = static_cast<std::int32_t>(real(context).type_attr(name)); });
}

// Readers share a variable's value, so that a kernel that changes it may need memory of its own.
void variable(TandemKernelContext* context, std::int32_t index, std::int32_t write,
              TandemTensor* tensor, TandemTensor* shared, TandemStatus* status) {
  guarded(status, [&] {
    KernelContext& c = real(context);
    check_index(c, "input", index, c.num_inputs());
    VariableResource& variable = variable_input(c.input(index));
    std::lock_guard lock(variable.mutex());
    require_initialized(c.input(index), variable);
    // A value that was given elsewhere moves to where it is used.
    if (device_of(variable.value()) != &c.device()) {
      variable.assign(kernel_view(copy_to_device(variable.value(), c.device())), false);
    }
    Array& value = variable.value();
    shared->data = nullptr;
    if (write != 0 && !value.writable_in_place()) {
      Array old = value;
      variable.assign(kernel_view(allocate_on(c.device(), old.dtype(), old.shape())), false);
      replaced_values().push_back(std::move(old));
      describe(replaced_values().back(), shared);
      shared->data = kernel_view(replaced_values().back()).raw_data();
    }
    // The sizes are those that the variable keeps, not a view's, which ends here.
    describe(variable.value(), tensor);
    tensor->data = kernel_view(variable.value()).raw_data();
  });
}

void* allocate_temporary(TandemKernelContext* context, std::uint64_t bytes, TandemStatus* status) {
  void* memory = nullptr;
  guarded(status, [&] {
    if (bytes > std::uint64_t{1} << 47)
      throw InvalidArgumentError(cat("the kernel asks for ", bytes, " bytes of temporary memory"));
    temporaries().push_back(
        real(context).allocate_temp(DType::kUint8, Shape{static_cast<std::int64_t>(bytes)}));
    memory = temporaries().back().raw_data();
  });
  return memory;
}

void forward(TandemKernelContext* context, std::int32_t from, std::int32_t to,
             TandemStatus* status) {
  guarded(status, [&] {
    KernelContext& c = real(context);
    check_index(c, "input", from, c.num_inputs());
    check_index(c, "output", to, c.num_outputs());
    c.set_output(to, c.input(from));
  });
}

void read_string_in_list(TandemKernelContext* context, const char* name, std::size_t index,
                         const char** out, std::size_t* length, std::size_t* count,
                         TandemStatus* status) {
  guarded(status, [&] {
    const auto* values = attr<std::vector<std::string>>(context, name, status);
    if (!values) return;
    *count = values->size();
    if (index >= values->size()) return;
    *out = (*values)[index].c_str();
    *length = (*values)[index].size();
  });
}

// Offered to plugins as soon as the library is there.
const bool kOffered = [] {
  TandemHostApi& host = plugin_host_api();
  host.kernel_op = [](TandemKernelContext* c) { return real(c).op().name.c_str(); };
  host.kernel_node = [](TandemKernelContext* c) {
    thread_local std::string name;  // node names do not end in NUL
    name = real(c).node_name();
    return name.c_str();
  };
  host.kernel_device = [](TandemKernelContext* c) { return plugin_handle(real(c).device()); };
  host.kernel_num_inputs = [](TandemKernelContext* c) { return real(c).num_inputs(); };
  host.kernel_num_outputs = [](TandemKernelContext* c) { return real(c).num_outputs(); };
  host.kernel_input = input;
  host.kernel_allocate_output = allocate_output;
  host.kernel_attr_int = read_attr<std::int64_t, std::int64_t>;
  host.kernel_attr_float = read_attr<float, float>;
  host.kernel_attr_bool = read_attr<bool, std::int32_t>;
  host.kernel_attr_string = read_string;
  host.kernel_attr_type = read_type;
  host.kernel_attr_int_list = read_list<std::int64_t>;
  host.kernel_attr_float_list = read_list<float>;
  host.kernel_variable = variable;
  host.kernel_forward = forward;
  host.kernel_deterministic = [](TandemKernelContext* c) {
    return real(c).deterministic() ? std::int32_t{1} : std::int32_t{0};
  };
  host.kernel_attr_string_list = read_string_in_list;
  host.kernel_allocate_temporary = allocate_temporary;
  host.kernel_tensor_float_32 = [](TandemKernelContext*) {
    return tensor_float_32_enabled() ? std::int32_t{1} : std::int32_t{0};
  };
  set_plugin_kernel_sink(register_plugin_kernels);
  return true;
}();

}  // namespace

namespace {

// Why a plugin's fused kernel cannot run the node; empty if it can.
std::string ask_about(const Node& fused,
                      void (*check)(const TandemFusedTree* tree, TandemStatus* status)) {
  const auto& names = *fused.attrs().find("ops")->get_if<std::vector<std::string>>();
  const auto& operands = *fused.attrs().find("operands")->get_if<std::vector<std::int64_t>>();
  std::vector<const char*> ops;
  for (const std::string& name : names) ops.push_back(name.c_str());
  std::vector<std::int32_t> types;
  for (const Output& in : fused.inputs())
    types.push_back(static_cast<std::int32_t>(in.node->output_dtype(in.index)));
  const TandemFusedTree tree = {.size = sizeof(tree),
                                .fused_op = fused.op().name.c_str(),
                                .num_ops = ops.size(),
                                .ops = ops.data(),
                                .num_operands = operands.size(),
                                .operands = operands.data(),
                                .num_inputs = types.size(),
                                .input_types = types.data(),
                                .output_type = static_cast<std::int32_t>(fused.output_dtype(0))};
  TandemStatus status;
  status.size = sizeof(status);
  status.code = TANDEM_OK;
  status.message[0] = '\0';
  check(&tree, &status);
  if (status.code == TANDEM_OK) return {};
  const std::string why = text_of(status);
  return why.empty() ? "it does not take this tree" : why;
}

// The table outlives the process's last use of it (PluginLibrary), as its kernels do.
void register_fusible_ops(const TandemPluginApi& plugin) {
  for (std::size_t i = 0; i < plugin.num_fusible_ops; ++i) {
    const TandemFusibleOp* const fusible = plugin.fusible_ops ? plugin.fusible_ops[i] : nullptr;
    if (!fusible || !fusible->op)
      throw InvalidArgumentError(
          cat("Fusible op ", i, " of the plugin ", plugin.name, " has no name."));
  }
  Table& all = table();
  std::unique_lock lock(all.mutex);
  for (std::size_t i = 0; i < plugin.num_fusible_ops; ++i) {
    const TandemFusibleOp& fusible = *plugin.fusible_ops[i];
    all.fuses.emplace_back(fusible.op, plugin.kernel_class, fusible.any_size != 0);
  }
  if (plugin.check_fused_tree) {
    all.fused_checks.emplace_back(
        plugin.kernel_class,
        [check = plugin.check_fused_tree](const Node& fused) { return ask_about(fused, check); });
  }
}

}  // namespace

void register_plugin_kernels(const TandemPluginApi& plugin) {
  for (std::size_t i = 0; i < plugin.num_kernels; ++i) {
    const TandemKernel* kernel = plugin.kernels[i];
    if (!kernel || !kernel->op || !kernel->run || (kernel->type_attr && !kernel->types) ||
        (has_second_attr(*kernel) && !kernel->second_types)) {
      throw InvalidArgumentError(cat("Kernel ", i, " of the plugin ", plugin.name,
                                     " lacks its op, its function or its types."));
    }
  }
  for (std::size_t i = 0; i < plugin.num_kernels; ++i) {
    const TandemKernel* kernel = plugin.kernels[i];
    Table& all = table();
    std::unique_lock lock(all.mutex);
    auto& list = all.by_class_and_op[{plugin.kernel_class, kernel->op}];
    list.insert(std::find_if(list.begin(), list.end(),
                             [&](const auto* k) { return k->priority < kernel->priority; }),
                kernel);
    KernelDecl decl{.op = kernel->op,
                    .name = kernel->name ? kernel->name : "plugin",
                    .kernel_class = plugin.kernel_class,
                    .priority = kernel->priority,
                    .run = run_plugin_kernel};
    if (kernel->type_attr) {
      decl.types[0] = {kernel->type_attr, set_of(kernel->types, kernel->num_types)};
    }
    if (has_second_attr(*kernel)) {
      decl.types[1] = {kernel->second_type_attr,
                       set_of(kernel->second_types, kernel->num_second_types)};
    }
    all.registrations.emplace_back(decl);
  }
  register_fusible_ops(plugin);
}

}  // namespace tandem

#include "tandem/runtime/eager/eager_choice.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/device/memory_space.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/eager/soft_placement.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

constexpr std::int64_t kSmall = 64;  // elements of an integer tensor that the host keeps

bool has_kernel(const DeviceCall& call, const Device& device) {
  const auto& without = device.properties().without;
  if (std::find(without.begin(), without.end(), call.op.name) != without.end()) return false;
  if (device.memory_space() != nullptr) {
    const auto is_string = [](DType t) { return base_dtype(t) == DType::kString; };
    // A variable of strings is made by an op that takes and gives none.
    const bool of_strings =
        std::any_of(call.attrs.begin(), call.attrs.end(), [&](const auto& attr) {
          const DType* type = attr.value.template get_if<DType>();
          return type && is_string(*type);
        });
    if (call.op.traits.cpu_only || of_strings ||
        std::any_of(call.output_dtypes.begin(), call.output_dtypes.end(), is_string) ||
        std::any_of(call.inputs.begin(), call.inputs.end(),
                    [&](const Tensor& t) { return is_string(t.dtype()); }))
      return false;
  }
  return call.runtime.kernels().find(call.op, device.kernel_class(), call.attrs) != nullptr;
}

// Accelerators first, as TensorFlow has it, without those that are lost.
std::vector<Device*> by_priority(const Runtime& runtime) {
  std::vector<Device*> devices;
  for (const bool accelerators : {true, false}) {
    for (const auto& d : runtime.devices()) {
      if ((d->memory_space() != nullptr) == accelerators && d->lost().empty())
        devices.push_back(d.get());
    }
  }
  return devices;
}

std::string names(const std::vector<Device*>& devices) {
  std::string text;
  for (const Device* d : devices) text += cat(text.empty() ? "" : ", ", d->name());
  return text;
}

std::string types(const std::vector<Device*>& devices) {
  std::vector<std::string> seen;
  for (const Device* d : devices) {
    if (std::find(seen.begin(), seen.end(), d->type()) == seen.end()) seen.push_back(d->type());
  }
  std::string text;
  for (const std::string& t : seen) text += cat(text.empty() ? "" : ", ", t);
  return text;
}

DeviceSpec requested() {
  const auto& scopes = thread_context().devices;
  return scopes.empty() ? DeviceSpec() : DeviceSpec::parse(scopes.back());
}

// The job, replica and task of this process are implied.
std::string full_name(const Runtime& runtime, const DeviceSpec& spec) {
  DeviceSpec full = spec.merged_into(runtime.task());
  if (full.type && !full.index) full.index = 0;
  return full.to_string();
}

Device* device_of_resource(const DeviceCall& call) {
  for (const Tensor& t : call.inputs) {
    const Array& a = t.impl()->array;
    if (a.dtype() != DType::kResource || a.num_elements() == 0) continue;
    const ResourceHandle& handle = *a.data<ResourceHandle>();
    if (handle.empty()) continue;
    const int place = call.runtime.index_of(handle.info().device);
    if (place >= 0) return call.runtime.devices()[static_cast<std::size_t>(place)].get();
  }
  return nullptr;
}

bool is_small_integer_work(const OpDef& op, std::span<const Tensor> inputs) {
  if (op.traits.stateful || inputs.empty()) return false;
  return std::all_of(inputs.begin(), inputs.end(), [](const Tensor& t) {
    const Array& a = t.impl()->array;
    return (a.dtype() == DType::kInt32 || a.dtype() == DType::kInt64) && a.on_host() &&
           a.num_elements() <= kSmall;
  });
}

bool is_plain_on_host(const Tensor& t) {
  const TensorImpl* const impl = t.impl();
  if (!impl || impl->pending || !impl->array.valid()) return false;
  if (const Buffer* const buffer = impl->array.buffer().get(); buffer && !buffer->computed())
    return false;
  const DType dtype = impl->array.dtype();
  return impl->array.on_host() && dtype != DType::kResource && dtype != DType::kVariant &&
         !is_ref(dtype);
}

// The scope is the same for many calls.
bool names_first_cpu(const Runtime& runtime, const std::string& scope) {
  thread_local std::string last;
  thread_local std::uint64_t last_runtime = 0;
  thread_local bool does = false;
  if (scope != last || last.empty() || last_runtime != runtime.id()) {
    const DeviceSpec spec = DeviceSpec::parse(scope);
    does = spec.type == "CPU" && spec.matches(runtime.default_device().spec());
    last = scope;
    last_runtime = runtime.id();
  }
  return does;
}

// "but that is lost"; null: it is there and works.
const Device* lost_device(const Runtime& runtime, const DeviceSpec& wanted) {
  for (const auto& d : runtime.devices()) {
    if (wanted.matches(d->spec())) return d->lost().empty() ? nullptr : d.get();
  }
  return nullptr;
}

bool exists(const Runtime& runtime, const DeviceSpec& wanted) {
  const auto& all = runtime.devices();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& d) { return wanted.matches(d->spec()); });
}

void report_fallback(Runtime& runtime, const std::string& what, const DeviceSpec& wanted,
                     const Device& chosen) {
  const bool lost = lost_device(runtime, wanted) != nullptr;
  const bool no_kernel = !lost && exists(runtime, wanted);
  const char* const why = lost        ? "that is lost"
                          : no_kernel ? "that has no kernel for it"
                                      : "there is no such device";
  const std::string request = cat("asked for ", full_name(runtime, wanted), ", but ", why);
  const std::string line =
      cat("Soft placement: ", what, " ", request, "; it runs on ", chosen.name());
  if (no_kernel) return report_soft_placement(runtime, line + '.');
  report_soft_placement(
      runtime,
      line +
          ", and what else asks for it elsewhere too. td devices lists what there "
          "is; td::config::set_soft_device_placement(false) makes this an error.",
      request);
}

// Refuses what soft placement is not for. It helps where a device lacks a kernel, or there is no
// device of that type; an index beyond those there are is a mistake.
void check_task(const Runtime& runtime, const DeviceSpec& wanted, const std::vector<Device*>& all) {
  check_device_index(runtime, wanted);
  if (names_other_task(runtime, wanted)) {
    throw InvalidArgumentError(
        cat(full_name(runtime, wanted), " unknown device. Devices that exist: ", names(all), "."));
  }
}

}  // namespace

bool plainly_on_host(const Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs) {
  runtime.check_open();
  if (op.traits.kind != NodeKind::kPlain || runtime.log_placement()) return false;
  const Device& host = runtime.default_device();
  if (!host.properties().without.empty() || host.kernel_class() != "cpu" ||
      !std::all_of(inputs.begin(), inputs.end(), is_plain_on_host))
    return false;
  const auto& scopes = thread_context().devices;
  return scopes.empty() || scopes.back().empty() ? is_small_integer_work(op, inputs)
                                                 : names_first_cpu(runtime, scopes.back());
}

bool names_other_task(const Runtime& runtime, const DeviceSpec& wanted) {
  return !wanted.task_spec().matches(runtime.task());
}

void check_device_index(const Runtime& runtime, const DeviceSpec& wanted) {
  if (!wanted.type || !wanted.index || !runtime.soft_placement() ||
      names_other_task(runtime, wanted) || exists(runtime, wanted))
    return;
  DeviceSpec any = wanted;
  any.index.reset();
  if (!exists(runtime, any)) return;
  throw InvalidArgumentError(
      cat("Could not satisfy device specification '", full_name(runtime, wanted),
          "': there is no such device, though there are others of its type. All available devices ",
          "[", names(by_priority(runtime)),
          "]. Ask for one of these; soft placement is for devices without a kernel, and for types "
          "of which there is none."));
}

bool asks_elsewhere(const Runtime& runtime) {
  const auto& scopes = thread_context().devices;
  return !scopes.empty() && !scopes.back().empty() && !names_first_cpu(runtime, scopes.back());
}

Device& choose_device(const DeviceCall& call) {
  if (Device* device = device_of_resource(call)) {
    if (const std::string lost = device->lost(); !lost.empty()) {
      throw UnavailableError(cat(
          "The resource that ", call.op.name, " is given lay in the memory of ", device->name(),
          ", which is lost: ", lost, ". Recreate it on another device, and load what was saved."));
    }
    if (has_kernel(call, *device)) return *device;
  }
  const std::vector<Device*> all = by_priority(call.runtime);
  const auto able_to = [&](const Device* d) { return has_kernel(call, *d); };
  const DeviceSpec wanted = requested();
  if (wanted.empty()) {
    Device& host = call.runtime.default_device();
    if (is_small_integer_work(call.op, call.inputs) && has_kernel(call, host)) return host;
    const auto first = std::find_if(all.begin(), all.end(), able_to);
    return first == all.end() ? host : **first;
  }
  std::vector<Device*> able;
  std::copy_if(all.begin(), all.end(), std::back_inserter(able), able_to);
  for (Device* d : able) {
    if (wanted.matches(d->spec())) return *d;
  }
  check_task(call.runtime, wanted, all);
  if (able.empty()) {  // the look-up there fails, and names the dtypes for which there are kernels
    for (Device* d : all) {
      if (wanted.matches(d->spec()) &&
          !call.runtime.kernels().find(call.op, d->kernel_class(), call.attrs)) {
        return *d;
      }
    }
  }
  if (!call.runtime.soft_placement() || able.empty()) {
    if (const Device* const gone = lost_device(call.runtime, wanted)) {
      throw UnavailableError(cat(call.op.name, " was asked to run on ", gone->name(),
                                 ", which is lost: ", gone->lost(),
                                 ". Ask for another device: ", names(able), "."));
    }
    throw InvalidArgumentError(cat(
        "Could not satisfy device specification '", full_name(call.runtime, wanted),
        "'. enable_soft_placement=", call.runtime.soft_placement() ? 1 : 0,
        ". Supported device types [", types(able), "]. All available devices [", names(all),
        "]. Devices with a kernel for ", call.op.name, ": [", names(able), "]. ",
        exists(call.runtime, wanted) ? cat("Ask for a device that has a kernel for ", call.op.name)
                                     : cat("There is no such device: ask for one of these"),
        ", or call td::config::set_soft_device_placement(true)."));
  }
  // Like TensorFlow: not the nearest index, but the first of those that can.
  report_fallback(call.runtime, call.op.name, wanted, *able.front());
  return *able.front();
}

Device& device_of_call(Runtime& runtime, const std::string& function) {
  runtime.check_open();
  const DeviceSpec wanted = requested();
  if (wanted.empty() && runtime.devices().size() == 1) return runtime.default_device();
  const std::vector<Device*> all = by_priority(runtime);
  for (Device* d : all) {
    if (wanted.matches(d->spec())) return *d;
  }
  check_task(runtime, wanted, all);
  if (!runtime.soft_placement()) {
    if (const Device* const gone = lost_device(runtime, wanted)) {
      throw UnavailableError(cat("Function '", function, "' was asked to run on ", gone->name(),
                                 ", which is lost: ", gone->lost(),
                                 ". Ask for another device: ", names(all), "."));
    }
    throw InvalidArgumentError(
        cat("Unable to find any devices for spec ", wanted.to_string(), ". All available devices [",
            names(all),
            "]. Ask for one of these, or call td::config::set_soft_device_placement(true)."));
  }
  report_fallback(runtime, cat("function '", function, "'"), wanted, *all.front());
  return *all.front();
}

}  // namespace tandem

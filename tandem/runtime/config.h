#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/string.h"
#include "tandem/device/device.h"
#include "tandem/graph/optimizer_options.h"
#include "tandem/runtime/device_config.h"

/// What TensorFlow calls tf.config. It concerns the thread's current runtime: inside a RuntimeScope
/// that runtime, else the default one, which starts at the first op and at list_logical_devices.
/// What the devices are made of can be set until then; a later change throws
/// FailedPreconditionError, saying again what is in force does not. What a program sets here wins
/// over the environment (docs/devices.md). Functions that take a device throw InvalidArgumentError
/// for one that does not exist, naming those that do. All functions are thread-safe.
namespace tandem::config {

using tandem::LogicalDeviceConfiguration;
using VirtualDeviceConfiguration = LogicalDeviceConfiguration;  ///< TensorFlow's older name

/// How functions take a physical device: what list_physical_devices gave, or its name "GPU:0".
/// Where devices are hidden, the logical device of this name may be another one.
class TANDEM_EXPORT DeviceArgument {
 public:
  DeviceArgument(const PhysicalDevice& device);
  DeviceArgument(const char* name)
      : DeviceArgument(internal::name_argument(name, "the name of a device")) {}
  DeviceArgument(std::string name);

  const std::string& name() const { return name_; }
  /// The argument as Python would print it, for errors.
  const std::string& text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

/// Any number of them: `{}`, one, `{gpus[0], "GPU:1"}` or a vector.
class TANDEM_EXPORT DeviceArguments {
 public:
  DeviceArguments() = default;
  DeviceArguments(std::initializer_list<DeviceArgument> devices) : devices_(devices) {}
  DeviceArguments(const PhysicalDevice& device) : devices_{device} {}
  DeviceArguments(const char* name) : devices_{name} {}
  DeviceArguments(const std::string& name) : devices_{name} {}
  DeviceArguments(const std::vector<PhysicalDevice>& devices);

  const std::vector<DeviceArgument>& devices() const { return devices_; }

 private:
  std::vector<DeviceArgument> devices_;
};

/// The devices there are, used or not; of one type ("GPU", in any case) or, with "", of all. None
/// of an unknown type. Does not start the runtime.
TANDEM_EXPORT std::vector<PhysicalDevice> list_physical_devices(StringView type = "");

/// What ops run on.
struct LogicalDevice {
  std::string name;                  ///< "/device:GPU:0"
  std::string device_type;           ///< "GPU"
  std::string physical_device = {};  ///< "/physical_device:GPU:0": what it is, or is cut from

  /// By name and type.
  bool operator==(const LogicalDevice& other) const {
    return name == other.name && device_type == other.device_type;
  }
};

/// The devices that ops run on. Starts the runtime, which throws what is contradictory or
/// impossible in all that was set.
TANDEM_EXPORT std::vector<LogicalDevice> list_logical_devices(StringView type = "");

/// Which physical devices are used. With a type, those of other types stay as they are: `({},
/// "GPU")` hides all GPUs. Without one the list is all that is used, CPU:0 too: if it is missing,
/// the start of the runtime throws NotFoundError, as in TensorFlow. Throws InvalidArgumentError for
/// a device of another type.
TANDEM_EXPORT void set_visible_devices(const DeviceArguments& devices, StringView type = "");
TANDEM_EXPORT std::vector<PhysicalDevice> get_visible_devices(StringView type = "");

/// Takes an accelerator's memory as it is needed instead of all at first use. Must be the same for
/// all visible accelerators when the runtime starts. Throws InvalidArgumentError for a CPU and for
/// a device that logical ones are cut from.
TANDEM_EXPORT void set_memory_growth(const DeviceArgument& device, bool enable);
/// Nothing if it was never set; throws NotFoundError for a CPU, as TensorFlow does.
TANDEM_EXPORT std::optional<bool> get_memory_growth(const DeviceArgument& device);

/// Cuts a physical device into logical ones, 1 to 1024: an accelerator's each with a memory limit
/// in MiB, the CPU's without. Limits hold exactly, and their sum may not exceed what the device
/// has, else InvalidArgumentError.
TANDEM_EXPORT void set_logical_device_configuration(
    const DeviceArgument& device, const std::vector<LogicalDeviceConfiguration>& logical_devices);
/// Nothing if it was never set.
TANDEM_EXPORT std::optional<std::vector<LogicalDeviceConfiguration>>
get_logical_device_configuration(const DeviceArgument& device);
/// TensorFlow's older names of the same.
TANDEM_EXPORT void set_virtual_device_configuration(
    const DeviceArgument& device, const std::vector<LogicalDeviceConfiguration>& logical_devices);
TANDEM_EXPORT std::optional<std::vector<LogicalDeviceConfiguration>>
get_virtual_device_configuration(const DeviceArgument& device);

/// At most so much of an accelerator's memory is used, which stays one logical device: 1 MiB to
/// what the device has, else InvalidArgumentError. std::nullopt takes back what was set here, so
/// that the environment's limit holds, if there is one. Goes together with memory growth, not with
/// logical devices.
TANDEM_EXPORT void set_memory_limit(const DeviceArgument& device,
                                    std::optional<std::int64_t> mebibytes);

struct MemoryInfo {
  std::size_t current = 0;  ///< bytes in use
  std::size_t peak = 0;     ///< the most since the start or reset_memory_stats
};
/// Memory in use of a logical device, "GPU:0", once it has run the eager calls that were made. Both
/// start the runtime. Both throw InvalidArgumentError for a name without type and index,
/// UnavailableError if the device is lost.
TANDEM_EXPORT MemoryInfo get_memory_info(StringView device);
TANDEM_EXPORT void reset_memory_stats(StringView device);

/// What the backend knows of a physical device: "device_name", … Empty for CPUs. Under "lost", why
/// the device is lost if it is, in the thread's runtime.
TANDEM_EXPORT std::map<std::string, std::string> get_device_details(const DeviceArgument& device);

/// Whether ops go elsewhere where the device asked for can't be had (the default) or throw. May
/// change at any time.
TANDEM_EXPORT void set_soft_device_placement(bool enabled);
TANDEM_EXPORT bool get_soft_device_placement();

/// Whether eager calls wait for the accelerator that runs them, so that an error is thrown where
/// the call stands. Unless asked, calls go on and a value's error is thrown at the first look at
/// it. May change at any time.
TANDEM_EXPORT void set_synchronous_execution(bool enabled);
TANDEM_EXPORT bool get_synchronous_execution();

/// "greedy" (TensorFlow's choice, the default) or "cost" (the cheapest by measured or estimated
/// times). May change at any time; functions placed before stay where they are (see reset_placement
/// in tandem/runtime/reset_placement.h).
TANDEM_EXPORT void set_placement_policy(StringView policy);
TANDEM_EXPORT std::string get_placement_policy();
/// A file of measured costs, as `Profile::costs().save(path)` writes it (not the trace); with it
/// the policy becomes "cost". It is read at once, and again where functions are placed: throws
/// NotFoundError, or InvalidArgumentError if it holds something else, and then changes nothing. ""
/// for none.
TANDEM_EXPORT void set_placement_profile(const String& path);
TANDEM_EXPORT std::string get_placement_profile();

/// Emulates accelerators, `emulate("GPU:2,memory=1GiB,link=12GB/s")`, several types with ';'
/// between them, "" for none; docs/devices.md has the keys. Replaces what was emulated before.
/// Throws InvalidArgumentError for a malformed text, saying what is wrong in it; that the ops of
/// `without` exist is seen when the runtime starts.
TANDEM_EXPORT void emulate(const String& specs);
/// Adds the devices of a shared library (tandem/device/plugin.h). The same file again changes
/// nothing. Throws NotFoundError for a file that isn't there, InvalidArgumentError for one that is
/// no plugin.
TANDEM_EXPORT void load_plugin(const String& path);
/// Adds the devices of a backend of the program's own.
TANDEM_EXPORT void add_backend(std::shared_ptr<Backend> backend);

namespace debugging {

/// Logs on stderr where every node and eager call goes. May change at any time.
TANDEM_EXPORT void set_log_device_placement(bool enabled);
TANDEM_EXPORT bool get_log_device_placement();

}  // namespace debugging

/// Ops give the same bits from run to run and for every number of threads (per build and kind of
/// machine); some are slower for it. Takes effect at once, for the current runtime and for those
/// made later.
TANDEM_EXPORT void enable_op_determinism(bool on = true);
TANDEM_EXPORT bool op_determinism_enabled();

namespace optimizer {

using Options = OptimizerOptions;

/// Which passes change graphs before they run, in the whole process. Takes effect at the next call
/// of each function, which is reoptimised; calls that are running end as they began. Functions
/// made with `optimize = false` stay as they are.
TANDEM_EXPORT void set_experimental_options(const Options& options);
TANDEM_EXPORT Options get_experimental_options();

}  // namespace optimizer

namespace threading {

/// Threads for the work inside one op, at most 4096 (0: one for each processor). Throws
/// InvalidArgumentError for others, FailedPreconditionError once the runtime has started, unless
/// the number is the one in force.
TANDEM_EXPORT void set_intra_op_parallelism_threads(int threads);
TANDEM_EXPORT int get_intra_op_parallelism_threads();
/// Ops of a graph that run side by side (0: one for each processor). Throws like the above.
TANDEM_EXPORT void set_inter_op_parallelism_threads(int threads);
TANDEM_EXPORT int get_inter_op_parallelism_threads();

}  // namespace threading
}  // namespace tandem::config

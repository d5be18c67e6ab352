#include "tandem/device/plugin/internal/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "tandem/core/version.h"
#include "tandem/device/kernel_class.h"
#include "tandem/device/plugin/internal/reserved_memory.h"
#include "tandem/device/plugin_backend.h"

namespace tandem {
namespace {

using InitFunction = void (*)(const TandemHostApi*, TandemPluginApi*, TandemStatus*);

// All that version 1.0 of the table has.
constexpr std::size_t kMinSize =
    offsetof(TandemPluginApi, event_destroy) + sizeof(TandemPluginApi::event_destroy);

struct Loaded {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<PluginLibrary>> by_path;
  PluginKernelSink sink = nullptr;
};

Loaded& loaded() {
  static auto* all = new Loaded;  // libraries are never unloaded
  return *all;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InvalidArgumentError(cat("The plugin ", path, " cannot be used: ", why));
}

InitFunction entry_of(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw NotFoundError(path.empty() ? std::string("A plugin needs a path.")
                                     : cat("There is no plugin at ", path, '.'));
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* why = dlerror();
    refuse(path, why ? why : "it is no shared library.");
  }
  void* entry = dlsym(library, "tandem_plugin_init");
  if (!entry) {
    refuse(path,
           "it does not export tandem_plugin_init. See tandem/device/plugin.h; in C++ the function "
           "must be extern \"C\".");
  }
  return reinterpret_cast<InitFunction>(entry);
}

void check_version(const std::string& path, const TandemPluginApi& api) {
  if (api.version_major != TANDEM_PLUGIN_VERSION_MAJOR) {
    refuse(path, cat("it was made for version ", api.version_major, '.', api.version_minor,
                     " of the plugin interface, and this is version ", TANDEM_PLUGIN_VERSION_MAJOR,
                     '.', TANDEM_PLUGIN_VERSION_MINOR, ". Compile it against the header ",
                     "tandem/device/plugin.h of Tandem ", TANDEM_VERSION_STRING, '.'));
  }
  if (api.size < kMinSize) {
    refuse(path,
           cat("its table has ", api.size, " bytes, and version ", TANDEM_PLUGIN_VERSION_MAJOR,
               ".0 has ", kMinSize, ": TandemPluginApi::size must be sizeof(TandemPluginApi)."));
  }
}

bool is_type_name(std::string_view type) {
  return !type.empty() && type != "CPU" && std::isupper(static_cast<unsigned char>(type[0])) &&
         std::all_of(type.begin(), type.end(), [](unsigned char c) {
           return std::isupper(c) || std::isdigit(c) || c == '_';
         });
}

void check_table(const std::string& path, const TandemPluginApi& api) {
  const std::pair<const char*, bool> needed[] = {
      {"name", api.name},
      {"device_type", api.device_type},
      {"kernel_class", api.kernel_class},
      {"device_count", api.device_count},
      {"device_properties", api.device_properties},
      {"device_open", api.device_open},
      {"device_close", api.device_close},
      {"memory_allocate", api.memory_allocate},
      {"memory_free", api.memory_free},
      {"stream_create", api.stream_create},
      {"stream_destroy", api.stream_destroy},
      {"stream_enqueue", api.stream_enqueue},
      {"stream_copy", api.stream_copy},
      {"stream_wait", api.stream_wait},
      {"event_record", api.event_record},
      {"event_done", api.event_done},
      {"event_wait", api.event_wait},
      {"event_destroy", api.event_destroy},
  };
  for (const auto& [name, given] : needed) {
    if (!given) refuse(path, cat("TandemPluginApi::", name, " is null."));
  }
  if (!api.staging_allocate != !api.staging_free) {
    refuse(path, "of staging_allocate and staging_free it has one alone.");
  }
  const bool reserves = api.memory_granularity;
  if (!api.memory_reserve == reserves || !api.memory_unreserve == reserves ||
      !api.memory_commit == reserves || !api.memory_decommit == reserves) {
    refuse(path, "of the functions for reserved ranges of memory it has some alone.");
  }
  if (!api.trace_begin != !api.trace_end) {
    refuse(path, "of trace_begin and trace_end it has one alone.");
  }
  const bool communicates = api.communicator_create;
  if (!api.collective_supported == communicates || !api.communicator_destroy == communicates ||
      !api.communicator_enqueue == communicates) {
    refuse(path, "of the functions for collectives it has some alone.");
  }
  if (!is_type_name(api.device_type)) {
    refuse(path, cat("its device type \"", api.device_type,
                     "\" is no upper-case name of its own, such as \"TOY\"."));
  }
  if (api.kernel_class == kEveryKernelClass) {
    refuse(path, "its kernel class \"*\" stands for every class.");
  }
  if (std::string_view(api.kernel_class) == "cpu" && api.num_kernels != 0) {
    refuse(path,
           "with the kernel class \"cpu\" the host's kernels serve: it may have none of its own.");
  }
}

std::unique_ptr<PluginLibrary> load(const std::string& path) {
  const InitFunction init = entry_of(path);
  auto library = std::make_unique<PluginLibrary>();
  library->path = path;
  // Room behind our own end, for a plugin of a later minor version that fills in more.
  union {
    TandemPluginApi api;
    std::byte room[sizeof(TandemPluginApi) + 1024];
  } table;
  std::memset(&table, 0, sizeof(table));
  table.api.size = sizeof(TandemPluginApi);
  TandemStatus status = no_error();
  init(&plugin_host_api(), &table.api, &status);
  if (status.code != TANDEM_OK) check(status, cat("The plugin ", path, " does not start"));
  check_version(path, table.api);
  check_table(path, table.api);
  library->api = table.api;
  return library;
}

}  // namespace

const PluginLibrary& open_plugin_library(const std::string& path) {
  std::error_code failed;
  std::string key = std::filesystem::canonical(path, failed).string();
  if (failed) key = path;
  Loaded& all = loaded();
  std::lock_guard lock(all.mutex);
  std::unique_ptr<PluginLibrary>& library = all.by_path[key];
  if (!library) {
    try {
      library = load(path);
      if (all.sink) all.sink(library->api);
    } catch (...) {
      all.by_path.erase(key);
      throw;
    }
  }
  return *library;
}

void set_plugin_kernel_sink(PluginKernelSink sink) {
  Loaded& all = loaded();
  std::lock_guard lock(all.mutex);
  all.sink = sink;
  if (!sink) return;
  for (const auto& [path, library] : all.by_path) sink(library->api);
}

TandemHostApi& plugin_host_api() {
  static TandemHostApi api = [] {
    TandemHostApi made = {};
    made.size = sizeof(made);
    made.version_major = TANDEM_PLUGIN_VERSION_MAJOR;
    made.version_minor = TANDEM_PLUGIN_VERSION_MINOR;
    made.tandem_version = TANDEM_VERSION_STRING;
    made.release_memory = [](TandemDevice* device) {
      return static_cast<std::uint64_t>(release_unused_memory(device));
    };
    return made;
  }();
  return api;
}

TandemStatus no_error() {
  TandemStatus status;
  status.size = sizeof(status);
  status.code = TANDEM_OK;
  status.message[0] = '\0';
  return status;
}

Code code_of_status(const TandemStatus& status) {
  return status.code >= 0 && status.code <= 16 ? static_cast<Code>(status.code) : Code::kUnknown;
}

std::string text_of_status(const TandemStatus& status) {
  const std::string text(status.message, strnlen(status.message, sizeof(status.message)));
  return text.empty() ? cat("it gives no reason (code ", status.code, ").") : text;
}

void check(const TandemStatus& status, const std::string& what) {
  if (status.code == TANDEM_OK) return;
  throw_error(code_of_status(status), cat(what, ": ", text_of_status(status)));
}

void report_current_exception(TandemStatus* status) noexcept {
  const std::exception_ptr error = std::current_exception();
  status->code = static_cast<std::int32_t>(code_of(error));
  const std::string text = message_of(error);
  const std::size_t length = std::min(text.size(), sizeof(status->message) - 1);
  std::memcpy(status->message, text.data(), length);
  status->message[length] = '\0';
}

}  // namespace tandem

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/conformance/conformance.h"
#include "tandem/device/memory_space.h"
#include "tandem/device/plugin_backend.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// The folder of the example plugins, built on their own against the public headers alone.
std::string example(const std::string& name) {
  const char* folder = std::getenv("TANDEM_TEST_PLUGINS");
  return std::string(folder ? folder : ".") + "/lib" + name + ".so";
}

template <class Body>
std::string message_from(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return std::string(code_name(error.code())) + ": " + error.what();
  }
  return "nothing was thrown";
}

ConformanceOptions toy_options() {
  ConformanceOptions options;
  options.lose = lose_plugin_device;
  return options;
}

TEST(Plugin, WithKernelsOfItsOwnPassesTheSuite) {
  const auto backend = load_plugin(example("toy_device"));
  EXPECT_EQ(backend->name(), "toy");
  ConformanceOptions options = toy_options();
  options.cannot = {{"copies/seen_by_kernels", "its kernels are its own"}};
  const auto results = run_conformance(*backend, options);
  EXPECT_TRUE(all_passed(results)) << describe(results);
}

TEST(Plugin, WithTheHostsKernelsPassesTheSuite) {
  const auto backend = load_plugin(example("toy_memory"));
  const auto results = run_conformance(*backend, toy_options());
  EXPECT_TRUE(all_passed(results)) << describe(results);
}

// Its structs are longer than this Tandem knows: see later.cpp.
TEST(Plugin, OfALaterMinorVersionPassesTheSuite) {
  const auto backend = load_plugin(TANDEM_LATER_PLUGIN);
  EXPECT_EQ(backend->name(), "later");
  ConformanceOptions options = toy_options();
  options.cannot = {{"copies/seen_by_kernels", "its kernels are its own"}};
  const auto results = run_conformance(*backend, options);
  EXPECT_TRUE(all_passed(results)) << describe(results);
}

TEST(Plugin, ReportsOfItsDevices) {
  const auto backend = load_plugin(example("toy_device"));
  const auto physical = backend->physical_devices();
  ASSERT_EQ(physical.size(), 2u);
  EXPECT_EQ(physical[1], (PhysicalDevice{"/physical_device:TOY:1", "TOY"}));
  const DeviceProperties p = backend->properties(physical[1]);
  EXPECT_EQ(p.description, "toy 1, made of host memory and threads");
  EXPECT_EQ(p.memory_bytes, std::size_t{32} << 20);
  EXPECT_TRUE(p.emulated);
  EXPECT_EQ(backend->unavailable(), "");
  EXPECT_THAT(message_from([&] {
                backend->properties({"/physical_device:TOY:2", "TOY"});
              }),
              HasSubstr("has no device /physical_device:TOY:2; it has 2."));
  EXPECT_THAT(message_from([&] {
                backend->make_device(physical[0], {.memory_limit = std::size_t{1} << 40},
                                     DeviceSpec::parse("TOY:0"));
              }),
              HasSubstr("INVALID_ARGUMENT: A memory limit of 1099511627776 bytes for "
                        "/physical_device:TOY:0, which has 33554432."));
}

// By another path to the same file it is the same library: one more start would build its hardware
// again under the first one's devices.
TEST(Plugin, IsLoadedOnce) {
  const std::filesystem::path path = example("toy_device");
  const auto folder = std::filesystem::canonical(path.parent_path());
  const auto first = load_plugin(path);
  const auto device =
      first->make_device(first->physical_devices()[0], {}, DeviceSpec::parse("TOY:0"));
  const Ref<Buffer> buffer = device->allocator().allocate(std::size_t{20} << 20);
  const auto again = load_plugin(folder / ".." / folder.filename() / path.filename());
  const auto other =
      again->make_device(again->physical_devices()[0], {}, DeviceSpec::parse("TOY:1"));
  EXPECT_THROW(other->allocator().allocate(std::size_t{20} << 20), ResourceExhaustedError);
}

TEST(Plugin, CopiesGoThroughTheHostBetweenKindsOfDevices) {
  const auto make = [](const char* name) {
    const auto backend = load_plugin(example(name));
    return backend->make_device(backend->physical_devices()[0], {.memory_growth = true},
                                DeviceSpec::parse("TOY:0"));
  };
  const auto first = make("toy_device");
  const auto other = make("toy_memory");
  EXPECT_FALSE(first->can_copy_to(*other));
  EXPECT_THAT(
      message_from([&] {
        first->stream(StreamKind::kCopyOut, 0)
            .enqueue(
                Copy{first->allocator().allocate(8), 0, other->allocator().allocate(8), 0, 8, {}});
      }),
      HasSubstr("INVALID_ARGUMENT: A stream of /device:TOY:0 cannot copy to or from"));
}

TEST(Plugin, ThatIsMissingOrNoPlugin) {
  EXPECT_EQ(message_from([] { load_plugin("/nowhere/libnothing.so"); }),
            "NOT_FOUND: There is no plugin at /nowhere/libnothing.so.");
  const std::string text = testing::TempDir() + "no_library.so";
  std::ofstream(text) << "no shared library";
  EXPECT_THAT(message_from([&] { load_plugin(text); }),
              HasSubstr("INVALID_ARGUMENT: The plugin " + text + " cannot be used: "));
  std::filesystem::remove(text);
}

// Libraries that are wrong in one way each: see broken.cpp.
class Broken : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Broken, IsRefusedWithTheReason) {
  const std::string path =
      std::string(TANDEM_BROKEN_PLUGINS) + "/libbroken_" + GetParam().first + ".so";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(message_from([&] { load_plugin(path); }), HasSubstr(GetParam().second));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plugin, Broken,
    testing::Values(std::pair{"entry", "it does not export tandem_plugin_init"},
                    std::pair{"version",
                              "it was made for version 2.7 of the plugin interface, and this is "
                              "version 1.10"},
                    std::pair{"size", "its table has 16 bytes, and version 1.0 has"},
                    std::pair{"function", "TandemPluginApi::event_wait is null."},
                    std::pair{"collectives", "of the functions for collectives it has some alone"},
                    std::pair{"type", "its device type \"CPU\" is no upper-case name of its own"},
                    std::pair{"start", "FAILED_PRECONDITION: The plugin "},
                    std::pair{"start", "does not start: no such hardware in this machine"},
                    std::pair{"count",
                              "libbroken_count.so cannot be used: TandemPluginApi::"
                              "device_count gives 1000000 and must give 0 to 4096."},
                    std::pair{"streams",
                              "TandemDeviceProperties::compute_streams of "
                              "/physical_device:BROKEN:0 is -3 and must be 1 to 64."},
                    std::pair{"memory", "memory_bytes of /physical_device:BROKEN:0 is "},
                    std::pair{"figure", "link_bandwidth of /physical_device:BROKEN:0 is -1"}));

}  // namespace
}  // namespace tandem

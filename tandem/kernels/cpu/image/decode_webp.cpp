#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"

// libwebp is opened when a WebP image is decoded, so that programs without them do not need it.
namespace tandem::cpu {
namespace {

// What libwebp says of an image (webp/decode.h).
struct Features {
  int width, height, has_alpha, has_animation, format;
  std::uint32_t pad[5];
};
constexpr int kAbiVersion = 0x0209;
constexpr std::int64_t kMaxSamples = std::int64_t{1} << 29;

struct LibWebP {
  int (*features)(const std::uint8_t*, std::size_t, Features*, int) = nullptr;
  std::uint8_t* (*decode_rgb)(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                              int) = nullptr;
  std::uint8_t* (*decode_rgba)(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                               int) = nullptr;

  LibWebP() {
    void* const library = dlopen("libwebp.so.7", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    };
    find(features, "WebPGetFeaturesInternal");
    find(decode_rgb, "WebPDecodeRGBInto");
    find(decode_rgba, "WebPDecodeRGBAInto");
  }
  bool complete() const { return features && decode_rgb && decode_rgba; }
};

const LibWebP& library() {
  static const LibWebP loaded;
  if (!loaded.complete()) {
    throw UnimplementedError(
        "Decoding WebP images needs libwebp.so.7, which is not installed (Debian: apt-get install "
        "libwebp7).");
  }
  return loaded;
}

void decode_webp(KernelContext& c) {
  const Array& contents = c.input(0);
  if (contents.rank() != 0)
    throw InvalidArgumentError(cat("contents must be scalar, got shape ", contents.shape()));
  const std::string& text = contents.data<std::string>()[0];
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  const LibWebP& webp = library();
  Features found{};
  if (webp.features(bytes, text.size(), &found, kAbiVersion) != 0)
    throw InvalidArgumentError("Invalid WebP data: the bytes are no WebP image, or cut short");
  if (found.has_animation)
    throw UnimplementedError("Animated WebP images are not decoded; their frames are several");
  auto channels = c.attr<std::int64_t>("channels");
  if (channels != 0 && channels != 3 && channels != 4)
    throw InvalidArgumentError(cat("channels must be 0, 3, or 4, got ", channels));
  const std::int64_t stored = found.has_alpha ? 4 : 3;
  if (channels == 0) channels = stored;
  if (channels != stored) {
    throw InvalidArgumentError(
        cat("The WebP image has ", stored, " channels, and ", channels,
            " were asked for. Decode it with channels = 0 and slice the result."));
  }
  const std::int64_t height = found.height, width = found.width;
  if (height * width > kMaxSamples / channels)
    throw InvalidArgumentError(cat("The WebP image is too large: ", height, " by ", width));
  Array& out = c.allocate_output(0, Shape{1, height, width, channels});
  const auto decode = channels == 3 ? webp.decode_rgb : webp.decode_rgba;
  if (!decode(bytes, text.size(), out.data<std::uint8_t>(),
              static_cast<std::size_t>(out.num_elements()), static_cast<int>(width * channels)))
    throw InvalidArgumentError("Invalid WebP data: the image is damaged or cut short");
}

const KernelRegistration kDecode{{.op = "DecodeWebP", .run = decode_webp}};

}  // namespace
}  // namespace tandem::cpu

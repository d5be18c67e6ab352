#include "tandem/graph/rendezvous_key.h"

#include <array>
#include <charconv>
#include <system_error>

#include "tandem/core/error.h"
#include "tandem/device/device_spec.h"

namespace tandem {
namespace {

constexpr std::size_t kIncarnationDigits = 16;

std::string hexadecimal(std::uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(kIncarnationDigits, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, value >>= 4)
    *digit = kDigits[value & 15];
  return text;
}

// The whole text as a number.
template <class T>
bool read_number(std::string_view text, T& value, int base) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && stop == end;
}

bool is_full_device(std::string_view name) {
  try {
    const DeviceSpec spec = DeviceSpec::parse(name);
    return spec.job && spec.replica && spec.task && spec.type && spec.index;
  } catch (const InvalidArgumentError&) {
    return false;
  }
}

}  // namespace

// FNV-1a over the surrounding frame, its iteration and the name. 0 is the graph itself.
std::uint64_t child_frame(const FrameIteration& from, std::string_view frame_name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const std::uint64_t number : {from.frame, static_cast<std::uint64_t>(from.iteration)}) {
    for (int shift = 0; shift < 64; shift += 8) add(number >> shift & 255);
  }
  for (const char c : frame_name) add(static_cast<unsigned char>(c));
  return hash == 0 ? 1 : hash;
}

RendezvousKey::RendezvousKey(std::string_view source_device, std::uint64_t source_incarnation,
                             std::string_view destination_device, std::string_view tensor_name,
                             FrameIteration frame_iteration)
    : incarnation_(source_incarnation), frame_iteration_(frame_iteration) {
  text_ = cat(source_device, ';', hexadecimal(source_incarnation), ';', destination_device, ';',
              tensor_name, ';', frame_iteration.frame, ':', frame_iteration.iteration);
  source_end_ = source_device.size();
  destination_ = source_end_ + kIncarnationDigits + 2;
  destination_end_ = destination_ + destination_device.size();
  name_end_ = destination_end_ + 1 + tensor_name.size();
}

RendezvousKey RendezvousKey::parse(std::string_view text) {
  // TensorFlow's text, two blanks included.
  const auto malformed = [&](std::string_view why) {
    return InvalidArgumentError(
        cat("Invalid  rendezvous key: ", text, " (", why,
            "; expected SOURCE_DEVICE;INCARNATION;DESTINATION_DEVICE;NAME;FRAME:ITERATION)"));
  };
  std::array<std::size_t, 4> separators{};
  std::size_t from = 0;
  for (std::size_t& at : separators) {
    at = text.find(';', from);
    if (at == std::string_view::npos) throw malformed("it has fewer than five parts");
    from = at + 1;
  }
  if (text.find(';', from) != std::string_view::npos)
    throw malformed("it has more than five parts");

  RendezvousKey key;
  key.text_ = text;
  key.source_end_ = separators[0];
  key.destination_ = separators[1] + 1;
  key.destination_end_ = separators[2];
  key.name_end_ = separators[3];
  const std::string_view incarnation =
      text.substr(separators[0] + 1, separators[1] - separators[0] - 1);
  if (!read_number(incarnation, key.incarnation_, 16))
    throw malformed("the incarnation is no hexadecimal number");
  const std::string_view frame_iteration = text.substr(separators[3] + 1);
  const std::size_t colon = frame_iteration.find(':');
  if (colon == std::string_view::npos ||
      !read_number(frame_iteration.substr(0, colon), key.frame_iteration_.frame, 10) ||
      !read_number(frame_iteration.substr(colon + 1), key.frame_iteration_.iteration, 10))
    throw malformed("it does not end in FRAME:ITERATION");
  if (!is_full_device(key.source_device())) throw malformed("the source is no full device name");
  if (!is_full_device(key.destination_device()))
    throw malformed("the destination is no full device name");
  if (key.tensor_name().empty()) throw malformed("the name is empty");
  return key;
}

}  // namespace tandem

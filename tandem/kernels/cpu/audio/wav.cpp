#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"

// WAV files: "RIFF", size, "WAVE", and chunks of a name, a size and content; "fmt " comes before
// "data". Numbers are little-endian.
namespace tandem::cpu {
namespace {

class WavReader {
 public:
  explicit WavReader(std::string_view bytes) : bytes_(bytes) {}

  std::string_view take(std::size_t count, const char* what) {
    if (count > bytes_.size() - at_) {
      throw InvalidArgumentError(cat("Data too short when trying to read ", what, ": ", count,
                                     " bytes are missing at byte ", at_, " of ", bytes_.size()));
    }
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  std::uint32_t number(std::size_t count, const char* what) {
    const std::string_view part = take(count, what);
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value |= static_cast<std::uint32_t>(static_cast<unsigned char>(part[i])) << (8 * i);
    return value;
  }
  void expect(std::string_view word) {
    const std::string_view found = take(word.size(), "a header");
    if (found != word) {
      throw InvalidArgumentError(
          cat("Header mismatch: Expected ", word, " but found ", printable(found)));
    }
  }
  bool at_end() const { return at_ >= bytes_.size(); }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  static std::string printable(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
      if (c < ' ' || c > '~') c = '?';
    }
    return out;
  }
  std::string_view bytes_;
  std::size_t at_ = 0;
};

struct Wav {
  std::uint32_t channels = 0;
  std::uint32_t sample_rate = 0;
  std::string_view samples;  // 16 bits each, channel by channel
};

Wav parse(std::string_view bytes) {
  WavReader reader(bytes);
  Wav wav;
  reader.expect("RIFF");
  reader.number(4, "the file's size");
  reader.expect("WAVE");
  reader.expect("fmt ");
  const std::uint32_t format_size = reader.number(4, "the size of the format");
  if (format_size != 16 && format_size != 18 && format_size != 40) {
    throw InvalidArgumentError(
        cat("Bad fmt chunk size for WAV: Expected 16, 18 or 40, but got ", format_size));
  }
  const std::uint32_t format = reader.number(2, "the format");
  // PCM, or the extensible form, whose samples are checked by their size.
  if (format != 1 && !(format == 0xfffe && format_size == 40)) {
    throw InvalidArgumentError(cat("Bad audio format for WAV: Expected 1 (PCM), but got ", format));
  }
  wav.channels = reader.number(2, "the number of channels");
  wav.sample_rate = reader.number(4, "the sample rate");
  reader.number(4, "the bytes per second");
  const std::uint32_t frame = reader.number(2, "the bytes per sample");
  const std::uint32_t bits = reader.number(2, "the bits per sample");
  if (bits != 16)
    throw InvalidArgumentError(cat("Can only read 16-bit WAV files, but received ", bits));
  if (wav.channels == 0) throw InvalidArgumentError("The WAV file has no channels");
  if (frame != 2 * wav.channels) {
    throw InvalidArgumentError(
        cat("Bad bytes per sample in WAV header: Expected ", 2 * wav.channels, " but got ", frame));
  }
  reader.take(format_size - 16, "the format");
  while (!reader.at_end()) {
    const std::string_view name = reader.take(4, "a chunk's name");
    const std::uint32_t size = reader.number(4, "a chunk's size");
    if (name == "data") {
      wav.samples = reader.take(size, "the samples");
      wav.samples = wav.samples.substr(0, wav.samples.size() / frame * frame);
      return wav;
    }
    reader.take(std::min<std::size_t>(size, reader.left()), "a chunk");
  }
  throw InvalidArgumentError("No data chunk found in WAV");
}

void decode_wav(KernelContext& c) {
  const Array& contents = c.input(0);
  if (contents.rank() != 0) {
    throw InvalidArgumentError(cat("contents must be scalar, but got shape ", contents.shape()));
  }
  const Wav wav = parse(contents.data<std::string>()[0]);
  const std::int64_t have_channels = wav.channels;
  const std::int64_t have = static_cast<std::int64_t>(wav.samples.size()) / (2 * have_channels);
  const auto wanted_channels = c.attr<std::int64_t>("desired_channels");
  const auto wanted = c.attr<std::int64_t>("desired_samples");
  const std::int64_t channels = wanted_channels < 0 ? have_channels : wanted_channels;
  const std::int64_t samples = wanted < 0 ? have : wanted;
  Array& out = c.allocate_output(0, Shape{samples, channels});
  float* to = out.data<float>();
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t k = 0; k < channels; ++k) {
      float value = 0;
      if (s < have) {
        const std::int64_t from = k < have_channels ? k : 0;
        const auto at = static_cast<std::size_t>(2 * (s * have_channels + from));
        const auto low = static_cast<unsigned char>(wav.samples[at]);
        const auto high = static_cast<unsigned char>(wav.samples[at + 1]);
        value = static_cast<float>(static_cast<std::int16_t>(low | high << 8)) / 32768.0f;
      }
      to[s * channels + k] = value;
    }
  }
  c.allocate_output(1, Shape{}).data<std::int32_t>()[0] =
      static_cast<std::int32_t>(wav.sample_rate);
}

void put(std::string& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void encode_wav(KernelContext& c) {
  const Array& audio = c.input(0);
  const Array& rate = c.input(1);
  if (audio.rank() != 2) {
    throw InvalidArgumentError(
        cat("audio must be 2-dimensional [samples, channels], but got shape ", audio.shape()));
  }
  if (rate.rank() != 0)
    throw InvalidArgumentError(cat("sample_rate must be scalar, but got shape ", rate.shape()));
  const std::int32_t sample_rate = rate.data<std::int32_t>()[0];
  const std::int64_t channels = audio.shape().dim(1);
  if (sample_rate <= 0) {
    throw InvalidArgumentError(cat("sample_rate must be positive, but got ", sample_rate));
  }
  if (channels <= 0 || channels >= 65536) {
    throw InvalidArgumentError(
        cat("num_channels must be in the range (0, 65536), but got ", channels));
  }
  const std::int64_t bytes = 2 * audio.num_elements();
  if (audio.num_elements() == 0) throw InvalidArgumentError("audio must have a sample at least");
  if (bytes > 0xffffff00ll)
    throw InvalidArgumentError("Provided channels and frames cannot fit in a WAV file");
  const auto frame = static_cast<std::uint32_t>(2 * channels);
  std::string out = "RIFF";
  out.reserve(static_cast<std::size_t>(bytes) + 44);
  put(out, static_cast<std::uint32_t>(36 + bytes), 4);
  out += "WAVEfmt ";
  put(out, 16, 4);
  put(out, 1, 2);
  put(out, static_cast<std::uint32_t>(channels), 2);
  put(out, static_cast<std::uint32_t>(sample_rate), 4);
  put(out, static_cast<std::uint32_t>(sample_rate) * frame, 4);
  put(out, frame, 2);
  put(out, 16, 2);
  out += "data";
  put(out, static_cast<std::uint32_t>(bytes), 4);
  for (const float value : audio.values<float>()) {
    const float scaled = std::clamp(std::round(value * 32768.0f), -32768.0f, 32767.0f);
    put(out, static_cast<std::uint16_t>(static_cast<std::int16_t>(scaled == scaled ? scaled : 0)),
        2);
  }
  c.allocate_output(0, Shape{}).data<std::string>()[0] = std::move(out);
}

const KernelRegistration kDecode{{.op = "DecodeWav", .run = decode_wav}};
const KernelRegistration kEncode{{.op = "EncodeWav", .run = encode_wav}};

}  // namespace
}  // namespace tandem::cpu

#include "tandem/kernels/cpu/codec/gif_decode.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include <gif_lib.h>

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

// A code of 12 bits stands for at most 4095 pixels.
constexpr std::int64_t kMaxPixelsOfAByte = 2731;

struct Frame {
  int left = 0, top = 0, width = 0, height = 0;
  int transparent = NO_TRANSPARENT_COLOR;
  std::vector<GifByteType> indices;  // of colours; empty if the frame is not wanted
};

class Reader {
 public:
  explicit Reader(std::string_view bytes)
      : left_(bytes), most_pixels_(kMaxPixelsOfAByte * static_cast<std::int64_t>(bytes.size())) {
    int error = D_GIF_SUCCEEDED;
    gif_ = DGifOpen(this, &read, &error);
    if (!gif_) fail("failed to open gif file", error);
  }
  ~Reader() { DGifCloseFile(gif_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The frames before the first that is damaged; the canvas is as large as the largest of them.
  void read_frames(GifFrames wanted) {
    while (read_frame(wanted)) {
    }
    if (frames_.empty()) {
      fail(gif_->Error == D_GIF_SUCCEEDED ? "gif file does not contain any image"
                                          : "failed to slurp gif file",
           gif_->Error);
    }
  }

  const std::vector<Frame>& frames() const { return frames_; }
  int width() const { return width_; }
  int height() const { return height_; }

  // Draws frame `number` over what is there.
  void draw(std::size_t number, std::uint8_t* canvas) const {
    const Frame& f = frames_[number];
    const ColorMapObject* own = gif_->SavedImages[number].ImageDesc.ColorMap;
    const ColorMapObject* colors = own ? own : gif_->SColorMap;
    if (!colors) throw InvalidArgumentError(cat("missing color map for frame ", number));
    const int right = std::min(f.left + f.width, width_);
    const int bottom = std::min(f.top + f.height, height_);
    for (std::int64_t y = f.top; y < bottom; ++y) {
      const GifByteType* indices = f.indices.data() + (y - f.top) * f.width;
      std::uint8_t* out = canvas + (y * width_ + f.left) * 3;
      for (int x = f.left; x < right; ++x, ++indices, out += 3) {
        if (*indices == f.transparent) continue;
        if (*indices >= colors->ColorCount) {
          throw InvalidArgumentError(cat("found color index ", int{*indices},
                                         " outside of color map range ", colors->ColorCount));
        }
        const GifColorType& color = colors->Colors[*indices];
        out[0] = color.Red;
        out[1] = color.Green;
        out[2] = color.Blue;
      }
    }
  }

 private:
  [[noreturn]] static void fail(const char* what, int error) {
    const char* why = GifErrorString(error);
    throw InvalidArgumentError(cat("Invalid GIF data: ", what, why ? ": " : "", why ? why : ""));
  }

  static int read(GifFileType* gif, GifByteType* out, int count) {
    std::string_view& left = static_cast<Reader*>(gif->UserData)->left_;
    const std::size_t got = std::min(left.size(), static_cast<std::size_t>(count));
    std::memcpy(out, left.data(), got);
    left.remove_prefix(got);
    return static_cast<int>(got);
  }

  // False at the end, or where the rest cannot be read.
  bool read_frame(GifFrames wanted) {
    Frame frame;
    bool has_control = false;
    for (;;) {
      GifRecordType type = UNDEFINED_RECORD_TYPE;
      if (DGifGetRecordType(gif_, &type) == GIF_ERROR || type == TERMINATE_RECORD_TYPE) {
        return false;
      }
      if (type == IMAGE_DESC_RECORD_TYPE) break;
      if (type == EXTENSION_RECORD_TYPE && !read_extension(frame, has_control)) return false;
    }
    if (DGifGetImageDesc(gif_) == GIF_ERROR) return false;
    const GifImageDesc& desc = gif_->Image;
    frame.left = desc.Left;
    frame.top = desc.Top;
    frame.width = desc.Width;
    frame.height = desc.Height;
    const std::int64_t pixels = std::int64_t{frame.width} * frame.height;
    if (pixels == 0 || pixels > most_pixels_) return false;
    const bool kept = wanted == GifFrames::kAll || frames_.empty();
    check_samples(frame, wanted);
    frame.indices.resize(static_cast<std::size_t>(kept ? pixels : frame.width));
    if (!read_lines(frame, kept)) return false;
    if (!kept) frame.indices.clear();
    width_ = std::max(width_, frame.width);
    height_ = std::max(height_, frame.height);
    frames_.push_back(std::move(frame));
    return true;
  }

  // The first control block before a frame says which colour is transparent.
  bool read_extension(Frame& frame, bool& has_control) {
    int function = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif_, &function, &block) == GIF_ERROR) return false;
    if (block && function == GRAPHICS_EXT_FUNC_CODE && !has_control) {
      has_control = true;
      GraphicsControlBlock control;
      if (DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        frame.transparent = control.TransparentColor;
    }
    while (block) {
      if (DGifGetExtensionNext(gif_, &block) == GIF_ERROR) return false;
    }
    return true;
  }

  void check_samples(const Frame& frame, GifFrames wanted) const {
    const std::int64_t count =
        wanted == GifFrames::kAll ? static_cast<std::int64_t>(frames_.size()) + 1 : 1;
    const std::int64_t canvas =
        std::int64_t{std::max(width_, frame.width)} * std::max(height_, frame.height);
    if (canvas * 3 > kMaxSamples / count) {
      throw InvalidArgumentError(cat("GIF image of ", count, " frames of ", canvas,
                                     " pixels has more than ", kMaxSamples, " samples"));
    }
  }

  bool read_lines(Frame& frame, bool kept) {
    const auto read_line = [&](int y) {
      GifByteType* line = frame.indices.data();
      if (kept) line += std::int64_t{y} * frame.width;
      return DGifGetLine(gif_, line, frame.width) != GIF_ERROR;
    };
    if (!gif_->Image.Interlace) {
      for (int y = 0; y < frame.height; ++y) {
        if (!read_line(y)) return false;
      }
      return true;
    }
    constexpr int kFirst[] = {0, 4, 2, 1};
    constexpr int kStep[] = {8, 8, 4, 2};
    for (int pass = 0; pass < 4; ++pass) {
      for (int y = kFirst[pass]; y < frame.height; y += kStep[pass]) {
        if (!read_line(y)) return false;
      }
    }
    return true;
  }

  std::string_view left_;  // to be read
  const std::int64_t most_pixels_;
  GifFileType* gif_ = nullptr;
  std::vector<Frame> frames_;
  int width_ = 0;
  int height_ = 0;
};

}  // namespace

void decode_gif(std::string_view bytes, std::int64_t channels, GifFrames frames,
                const PixelMemory<std::uint8_t>& memory) {
  if (channels != 0 && channels != 3) {
    throw InvalidArgumentError(cat("`channels` must be 0 or 3 for GIF, but got ", channels));
  }
  Reader reader(bytes);
  reader.read_frames(frames);
  const std::size_t count = frames == GifFrames::kFirst ? 1 : reader.frames().size();
  if (frames == GifFrames::kOnly && count != 1) {
    throw InvalidArgumentError(cat("Got ", count,
                                   " frames, but animated gifs can only be decoded by "
                                   "`decode_gif` or `decode_image`"));
  }
  ImageSize size{reader.height(), reader.width(), 3};
  if (frames == GifFrames::kAll) size.frames = static_cast<std::int64_t>(count);
  std::uint8_t* out = memory(size);
  const auto canvas = static_cast<std::size_t>(size.height * size.width * 3);
  std::fill_n(out, canvas, std::uint8_t{0});
  for (std::size_t i = 0; i < count; ++i, out += canvas) {
    if (i > 0) std::copy_n(out - canvas, canvas, out);
    reader.draw(i, out);
  }
}

}  // namespace tandem::cpu

// td::image where the stored answers of tf.image do not reach: while tracing, and on hostile bytes.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/ops/image_transform_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

Tensor picture(std::int64_t height, std::int64_t width) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(height * width * 3));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7);
  return Tensor::from(pixels, {height, width, 3});
}

std::string failure(const std::function<Tensor()>& f) {
  try {
    f().array();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "";
}

// What a decoded image goes through while its size is not known.
Tensor prepared(const Tensor& contents) {
  const Tensor decoded = image::decode_jpeg(contents, {.channels = 3});
  const Tensor cut = image::central_crop(decoded, 0.6);
  const Tensor sized = image::resize(cut, {8, 6}, {.preserve_aspect_ratio = true});
  const Tensor padded = image::resize_with_crop_or_pad(sized, 9, 5);
  return image::adjust_brightness(image::resize_with_pad(padded, 12, 12), 0.25f);
}

TEST(ImageFunctions, SizesNeedNotBeKnownWhileTracing) {
  const auto traced = function([](Tensor contents) { return prepared(contents); });
  for (const std::int64_t width : {17, 30, 31}) {
    const Tensor contents = image::encode_jpeg(picture(20, width));
    const Tensor eager = prepared(contents);
    EXPECT_EQ(eager.shape(), Shape({12, 12, 3}));
    EXPECT_EQ(traced(contents).array(), eager.array()) << width;
  }
}

TEST(ImageFunctions, UnknownRankIsExplained) {
  const auto traced =
      function([](Tensor contents) { return image::flip_up_down(image::decode_image(contents)); });
  const Tensor contents = image::encode_png(picture(2, 2));
  EXPECT_THAT(failure([&] { return traced(contents); }), HasSubstr("expand_animations"));
}

TEST(ImageFunctions, CropsOutsideOfComputedSizesFail) {
  const auto traced = function([](Tensor contents) {
    return image::crop_to_bounding_box(image::decode_png(contents, 3), 0, 0, 5, 5);
  });
  EXPECT_NE(failure([&] { return traced(image::encode_png(picture(4, 9))); }), "");
  EXPECT_EQ(traced(image::encode_png(picture(5, 9))).shape(), Shape({5, 5, 3}));
}

TEST(ImageFunctions, AnnouncedSizesBeyondTheBytesAreRefused) {
  std::string png = image::encode_png(picture(3, 3)).item<std::string>();
  png[18] = png[22] = '\x40';  // 16387 x 16387; the checksum of the header does not fit any more
  EXPECT_THAT(failure([&] { return image::decode_png(png); }), HasSubstr("Invalid PNG data"));
  std::string jpeg = image::encode_jpeg(picture(8, 8)).item<std::string>();
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg[frame + 5] = jpeg[frame + 7] = '\x20';  // 8200 x 8200
  EXPECT_THAT(failure([&] { return image::decode_jpeg(jpeg); }),
              HasSubstr("cannot hold the 8200 x 8200 pixels announced"));
  jpeg[frame + 5] = jpeg[frame + 7] = '\x7f';
  EXPECT_THAT(failure([&] { return image::decode_jpeg(jpeg); }), HasSubstr("too large"));
}

TEST(ImageFunctions, TruncatedImagesSayHowFarTheyWent) {
  const std::string jpeg = image::encode_jpeg(picture(64, 64)).item<std::string>();
  const std::string half = jpeg.substr(0, jpeg.size() / 2);
  EXPECT_THAT(failure([&] { return image::decode_jpeg(half); }), HasSubstr("Invalid JPEG data"));
  EXPECT_EQ(image::decode_jpeg(half, {.try_recover_truncated = true}).shape(), Shape({64, 64, 3}));
}

// Images of bytes go through other instructions than images of floats.
TEST(ImageFunctions, BytesAreResizedLikeFloats) {
  for (const std::int64_t channels : {1, 2, 3, 4, 5}) {
    for (const auto& [height, width] :
         {std::pair<std::int64_t, std::int64_t>{37, 53}, {1, 1}, {2, 90}, {64, 3}}) {
      std::vector<std::uint8_t> pixels(static_cast<std::size_t>(2 * height * width * channels));
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        pixels[i] = static_cast<std::uint8_t>(i * i * 31 + i / 3);
      }
      const Tensor bytes = Tensor::from(pixels, {2, height, width, channels});
      for (const char* method : {"bilinear", "bicubic", "area"}) {
        for (const auto& [h, w] :
             {std::pair<std::int64_t, std::int64_t>{16, 16}, {1, 1}, {80, 7}, {5, 97}}) {
          const Tensor a = image::resize(bytes, {h, w}, {.method = method});
          const Tensor b = image::resize(cast(bytes, float32), {h, w}, {.method = method});
          const auto left = a.data<float>(), right = b.data<float>();
          for (std::size_t i = 0; i < left.size(); ++i) {
            ASSERT_NEAR(left[i], right[i], 255e-5f)
                << method << " of " << height << " x " << width << " x " << channels << " to " << h
                << " x " << w << ", at " << i;
          }
        }
      }
    }
  }
}

TEST(ImageFunctions, FormatsAreReportedApart) {
  const Tensor pixels = picture(5, 4);
  const Tensor png = image::encode_png(pixels);
  EXPECT_EQ(image::decode_image(png).array(), pixels.array());
  EXPECT_EQ(image::decode_jpeg(png).array(), pixels.array());
  EXPECT_FALSE(static_cast<bool>(image::is_jpeg(png)));
  EXPECT_TRUE(static_cast<bool>(image::is_jpeg(image::encode_jpeg(pixels))));
  EXPECT_THAT(failure([] { return image::decode_image("GIF89a..."); }),
              HasSubstr("Invalid GIF data"));
  EXPECT_THAT(failure([] { return image::decode_image("RIFF...."); }), HasSubstr("not supported"));
  EXPECT_THAT(failure([&] { return image::decode_bmp(png); }), HasSubstr("PNG"));
}

// Two frames of 2 × 1 pixels in black and white: white black, then black where it was white.
Tensor animation() {
  using namespace std::string_literals;
  const std::string head = "GIF89a\2\0\1\0\x80\0\0\0\0\0\xff\xff\xff"s;
  const std::string both = ",\0\0\0\0\2\0\1\0\0\2\2\x0c\x0a\0"s;
  const std::string left = ",\0\0\0\0\1\0\1\0\0\2\2\x44\x01\0"s;
  return Tensor(head + both + left + ";");
}

TEST(ImageFunctions, FramesAreDrawnOverEachOther) {
  const Tensor frames = image::decode_image(animation());
  EXPECT_EQ(frames.shape(), Shape({2, 1, 2, 3}));
  EXPECT_EQ(frames.to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(image::decode_gif(animation()).array(), frames.array());
  const Tensor first = image::decode_image(animation(), 0, uint8, false);
  EXPECT_EQ(first.shape(), Shape({1, 2, 3}));
  EXPECT_EQ(first.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{255, 255, 255, 0, 0, 0}));
  EXPECT_THAT(failure([] { return image::decode_png(animation()); }), HasSubstr("Got 2 frames"));
  EXPECT_THAT(failure([] { return image::decode_image(animation(), 1); }),
              HasSubstr("must be 0 or 3 for GIF"));
  const auto larger = [](Tensor bytes) {
    return image::resize(image::decode_image(std::move(bytes), 3, uint8, false), {2, 4}) / 255.0f;
  };
  EXPECT_EQ(function(larger)(animation()).array(), larger(animation()).array());
}

TEST(ImageFunctions, GifBombsAreRefused) {
  std::string bytes = animation().item<std::string>();
  for (const std::size_t side : {24, 26}) bytes.replace(side, 2, "\xff\xff");
  EXPECT_THAT(failure([&] { return image::decode_gif(Tensor(bytes)); }),
              HasSubstr("Invalid GIF data"));
}

}  // namespace
}  // namespace tandem

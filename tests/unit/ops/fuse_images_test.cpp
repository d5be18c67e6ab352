// Decoding, resizing and what follows become one op, which gives every bit that the single ops give
// eagerly, and their errors.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/image_transform_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/ops/fusion_util.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr const char* kResize = "_FusedResize";
constexpr const char* kDecode = "_FusedDecodeJpeg";

using Tensors = std::vector<Tensor>;

bool same_bits(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.num_bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.num_bytes()) == 0);
}

// The optimised graph has one such op and none that it stands for, and gives the same bits.
void expect_fused(const Body& body, const Tensors& args, const char* op) {
  const MutableFunction f = optimized_graph(body, args);
  EXPECT_EQ(count_op(f, op), 1) << f.graph.to_string();
  for (const char* gone : {"ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea",
                           "_FusedElementwise"})
    EXPECT_EQ(count_op(f, gone), 0) << f.graph.to_string();
  const auto run = function([&](const Tensors& x) { return body(x); });
  const Tensors eager = body(args);
  for (int call = 0; call < 2; ++call) {
    const Tensors fused = run(args);
    ASSERT_EQ(fused.size(), eager.size());
    for (std::size_t i = 0; i < eager.size(); ++i)
      EXPECT_TRUE(same_bits(fused[i].array(), eager[i].array()));
  }
}

void expect_not_fused(const Body& body, const Tensors& args) {
  const MutableFunction f = optimized_graph(body, args);
  EXPECT_EQ(count_op(f, kResize) + count_op(f, kDecode), 0) << f.graph.to_string();
}

// Waves, so that neither values nor their differences are simple numbers; with negative zeros.
Tensor picture(const Shape& shape, DType dtype = DType::kUint8) {
  std::vector<float> values(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(i);
    const double wave = 127 + 90 * std::sin(x / 7) + 37 * std::cos(x * x / 977);
    values[i] = i % 11 == 5 ? -0.0f : static_cast<float>(dtype == DType::kUint8 ? wave : wave / 3);
  }
  return cast(Tensor::from(values, shape), dtype);
}

Tensor jpeg(std::int64_t height, std::int64_t width, std::int64_t channels = 3,
            const image::EncodeJpegOptions& options = {}) {
  return image::encode_jpeg(picture({height, width, channels}), options);
}

Tensor without_end(const Tensor& contents, double share) {
  std::string bytes = contents.item<std::string>();
  bytes.resize(static_cast<std::size_t>(share * static_cast<double>(bytes.size())));
  return Tensor(bytes);
}

// ---- Resizes take in what follows ----

TEST(FuseImages, ResizeGivesTheBitsOfSingleOps) {
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 1}, {5, 9}, {40, 23}, {13, 61}};
  for (const DType from : {DType::kUint8, DType::kFloat, DType::kDouble, DType::kHalf}) {
    for (const DType to : {DType::kFloat, DType::kHalf, DType::kBFloat16, DType::kDouble}) {
      for (const auto& [height, width] : sizes) {
        for (int placement = 0; placement < 3; ++placement) {
          for (const bool nearest : {false, true}) {
            const image::ResizeOptions options{placement == 1, placement == 2};
            const Body body = [&, height = height, width = width](const Tensors& x) {
              const Tensor size = Tensor::from(std::vector<std::int32_t>{
                  static_cast<std::int32_t>(height), static_cast<std::int32_t>(width)});
              const Tensor sized = nearest ? image::resize_nearest_neighbor(x[0], size, options)
                                           : image::resize_bilinear(x[0], size, options);
              return Tensors{cast(tanh((cast(sized, DType::kFloat) - x[1]) / 57.0f) * x[2], to)};
            };
            SCOPED_TRACE(cat(from, " to ", to, " ", height, "x", width, " ", placement, nearest));
            expect_fused(body, {picture({2, 17, 19, 3}, from), numbers({3}, 1), numbers({}, 2)},
                         kResize);
          }
        }
      }
    }
  }
}

TEST(FuseImages, ResizesByAnyMethod) {
  for (const char* method : {"bilinear", "bicubic", "area", "nearest"}) {
    for (const int side : {1, 6, 33, 80}) {
      SCOPED_TRACE(cat(method, " ", side));
      const Body body = [&](const Tensors& x) {
        const Tensor sized = image::resize(x[0], {side, side + 1}, {.method = method});
        return Tensors{tanh(cast(sized, DType::kFloat) / 57.0f)};
      };
      expect_fused(body, {picture({33, 47, 3})}, kResize);
      expect_fused(body, {picture({2, 33, 47, 1})}, kResize);
      expect_fused([&](const Tensors& x) { return body({image::decode_jpeg(x[0])}); },
                   {jpeg(33, 47)}, kDecode);
      expect_fused([&](const Tensors& x) { return body({image::decode_jpeg(x[0])}); },
                   {jpeg(191, 150, 1)}, kDecode);
    }
  }
  for (const bool corners : {false, true}) {
    const Body body = [&](const Tensors& x) {
      return Tensors{image::resize_bicubic(x[0], Tensor{13, 50}, {.align_corners = corners}) / 2.0f,
                     image::resize_area(x[0], Tensor{13, 50}, corners) / 2.0f};
    };
    const MutableFunction f = optimized_graph(body, {picture({1, 30, 30, 3})});
    EXPECT_EQ(count_op(f, kResize), 2) << f.graph.to_string();
    const auto run = function([&](const Tensors& x) { return body(x); });
    const Tensors args{picture({1, 30, 30, 3})}, fused = run(args), eager = body(args);
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(same_bits(fused[i].array(), eager[i].array())) << i;
  }
}

TEST(FuseImages, ResizeTakesSizesOfOneAndNone) {
  const Body body = [](const Tensors& x) {
    return Tensors{exp(image::resize_bilinear(x[0], Tensor{7, 5}) * 0.25f)};
  };
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{3, 1, 1, 4}, Shape{1, 1, 30, 3},
                             Shape{1, 30, 1, 2}, Shape{0, 8, 8, 3}, Shape{1, 9, 9, 700}}) {
    SCOPED_TRACE(cat(shape));
    expect_fused(body, {picture(shape)}, kResize);
    expect_fused(body, {picture(shape, DType::kFloat)}, kResize);
  }
}

TEST(FuseImages, OperandsOfManyShapes) {
  // The resized image is read twice, by what is one op already.
  const Body tree = [](const Tensors& x) {
    const Tensor sized = image::resize_bilinear(x[0], Tensor{24, 60}, {.half_pixel_centers = true});
    const Tensor other = cast(x[1], DType::kFloat);
    return Tensors{(sized - other) * sigmoid(sized + other) * other};
  };
  const Body chain = [](const Tensors& x) {
    return Tensors{x[1] - image::resize_bilinear(x[0], Tensor{4, 6}) * x[1]};
  };
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}, Shape{1, 3}, Shape{60, 3}, Shape{60, 1},
                             Shape{24, 1, 1}, Shape{24, 1, 3}, Shape{24, 60, 3}, Shape{2, 1, 1, 1},
                             Shape{2, 24, 60, 3}, Shape{1, 1, 1, 3}}) {
    SCOPED_TRACE(cat(shape));
    for (const DType dtype : {DType::kFloat, DType::kBFloat16})
      expect_fused(tree, {picture({2, 20, 40, 3}), numbers(shape, 1, dtype)}, kResize);
  }
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{6, 1}, Shape{4, 1, 3}, Shape{2, 4, 6, 3}}) {
    SCOPED_TRACE(cat(shape));
    expect_fused(chain, {picture({2, 20, 40, 3}), numbers(shape, 1)}, kResize);
  }
}

TEST(FuseImages, ImagesOfOne) {
  const Body body = [](const Tensors& x) {
    return Tensors{image::resize(x[0], {20, 31}) / 127.5f - 1.0f};
  };
  expect_fused(body, {picture({33, 17, 3})}, kResize);
  expect_fused(body, {picture({33, 17, 1}, DType::kFloat)}, kResize);
  const Body indexed = [](const Tensors& x) {
    return Tensors{index(image::resize_bilinear(index(x[0], {newaxis}), Tensor{20, 31}), {0}) *
                   0.5f};
  };
  expect_fused(indexed, {picture({33, 17, 3})}, kResize);
}

TEST(FuseImages, LeavesWhatOthersRead) {
  expect_not_fused(
      [](const Tensors& x) {
        const Tensor sized = image::resize(x[0], {20, 31});
        return Tensors{sized / 255.0f, sized};
      },
      {picture({33, 17, 3})});
  // The operand has rows that the resized image lacks.
  expect_not_fused(
      [](const Tensors& x) {
        return Tensors{image::resize_bilinear(x[0], Tensor{20, 31}) * x[1]};
      },
      {picture({1, 33, 17, 3}), numbers({4, 1, 1, 1}, 1)});
  expect_not_fused(
      [](const Tensors& x) {
        return Tensors{image::resize(x[0], {20, 31})};
      },
      {picture({33, 17, 3})});
  // The last image of a batch is no image of one.
  expect_not_fused(
      [](const Tensors& x) {
        return Tensors{index(image::resize_bilinear(x[0], Tensor{20, 31}), {1}) * 0.5f};
      },
      {picture({2, 33, 17, 3})});
}

TEST(FuseImages, IsSwitchedOff) {
  const Body body = [](const Tensors& x) { return Tensors{image::resize(x[0], {20, 31}) / 2.0f}; };
  config::optimizer::set_experimental_options({.image_fusion = false});
  expect_not_fused(body, {picture({33, 17, 3})});
  config::optimizer::set_experimental_options({});
  expect_fused(body, {picture({33, 17, 3})}, kResize);
}

// ---- Decoding goes line by line ----

TEST(FuseImages, DecodesWhatAMapFunctionAsksFor) {
  const Body body = [](const Tensors& x) {
    const Tensor sized =
        image::resize(image::decode_jpeg(x[0], {.channels = 3}), {24, 32}, {.method = "bilinear"});
    return Tensors{image::adjust_brightness(sized, x[1]) / 255.0f};
  };
  for (const auto& [height, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {2, 3}, {24, 32}, {17, 90}, {200, 31}, {150, 220}}) {
    SCOPED_TRACE(cat(height, " x ", width));
    expect_fused(body, {jpeg(height, width), Tensor(3.25f)}, kDecode);
    expect_fused(body, {jpeg(height, width, 1), Tensor(3.25f)}, kDecode);
    expect_fused(body, {jpeg(height, width, 3, {.progressive = true}), Tensor(3.25f)}, kDecode);
    expect_fused(body, {jpeg(height, width, 3, {.chroma_downsampling = false}), Tensor(3.25f)},
                 kDecode);
    expect_fused(body, {image::encode_png(picture({height, width, 3})), Tensor(3.25f)}, kDecode);
  }
}

TEST(FuseImages, DecodesWithEveryOption) {
  const Tensor contents = jpeg(75, 101);
  for (const std::int64_t ratio : {1, 2, 4, 8}) {
    for (const bool fancy : {false, true}) {
      for (const char* dct : {"", "INTEGER_ACCURATE"}) {
        for (const std::int64_t channels : {0, 1, 3}) {
          const image::DecodeJpegOptions options{
              .channels = channels, .ratio = ratio, .fancy_upscaling = fancy, .dct_method = dct};
          const Body whole = [&](const Tensors& x) {
            return Tensors{image::resize(image::decode_jpeg(x[0], options), {30, 20}) * 0.5f};
          };
          expect_fused(whole, {contents}, kDecode);
          if (ratio != 1) continue;
          const Body cut = [&](const Tensors& x) {
            const Tensor window{3, 10, 60, 71};
            const Tensor pixels = image::decode_and_crop_jpeg(x[0], window, options);
            return Tensors{image::resize(pixels, {30, 20}) * 0.5f};
          };
          expect_fused(cut, {contents}, kDecode);
        }
      }
    }
  }
}

TEST(FuseImages, DecodesForOtherResizes) {
  const Tensor contents = jpeg(75, 101);
  const auto pixels = [](const Tensors& x) { return image::decode_jpeg(x[0], {.channels = 3}); };
  // Nothing follows; a size that is computed; a batch of one; the nearest pixels; a double.
  expect_fused(
      [&](const Tensors& x) {
        return Tensors{image::resize(pixels(x), {30, 20})};
      },
      {contents}, kDecode);
  expect_fused([&](const Tensors& x) { return Tensors{image::resize(pixels(x), x[1]) + 1.0f}; },
               {contents, Tensor{30, 20}}, kDecode);
  expect_fused(
      [&](const Tensors& x) {
        return Tensors{image::resize_bilinear(expand_dims(pixels(x), 0), Tensor{160, 140}) * 2.0f};
      },
      {contents}, kDecode);
  for (const int side : {20, 75, 160}) {
    expect_fused(
        [&](const Tensors& x) {
          const Tensor near = image::resize(pixels(x), {side, side}, {.method = "nearest"});
          return Tensors{cast(near, DType::kFloat) / 255.0f};
        },
        {contents}, kDecode);
  }
  expect_fused(
      [&](const Tensors& x) {
        return Tensors{cast(image::resize(pixels(x), {30, 20}), DType::kDouble)};
      },
      {contents}, kDecode);
}

TEST(FuseImages, ComputesBeforeTheResizeToo) {
  const Tensor png = image::encode_png(picture({40, 61, 3}));
  for (const Tensor& contents : {jpeg(75, 101), jpeg(9, 11), jpeg(75, 101, 1), png}) {
    for (const char* method : {"bilinear", "bicubic", "area", "nearest"}) {
      const auto sized = [&](const Tensor& image) {
        return image::resize(image, {20, 37}, {.method = method});
      };
      const auto decoded = [](const Tensors& x) {
        return image::decode_jpeg(x[0], {.channels = 3});
      };
      SCOPED_TRACE(method);
      expect_fused(
          [&](const Tensors& x) {
            return Tensors{sized(image::convert_image_dtype(decoded(x), DType::kFloat))};
          },
          {contents}, kDecode);
      expect_fused(
          [&](const Tensors& x) {
            const Tensor floats = cast(decoded(x), DType::kFloat);
            return Tensors{cast((sized((floats - x[1]) * exp(x[2])) - x[2]) * x[3], DType::kHalf)};
          },
          {contents, numbers({3}, 1), numbers({}, 2), numbers({37, 1}, 3)}, kDecode);
    }
  }
  // In a batch of one, and with a cast alone.
  expect_fused(
      [](const Tensors& x) {
        const Tensor floats = cast(image::decode_jpeg(x[0]), DType::kFloat);
        return Tensors{image::resize_bilinear(expand_dims(floats, 0), Tensor{90, 30})};
      },
      {jpeg(75, 101)}, kDecode);
  // Missing lines go the same way.
  expect_fused(
      [](const Tensors& x) {
        const Tensor pixels = image::decode_jpeg(x[0], {.try_recover_truncated = true});
        return Tensors{image::resize(image::convert_image_dtype(pixels, DType::kFloat), {90, 30})};
      },
      {without_end(jpeg(75, 101), 0.5)}, kDecode);
  // The operand's size is not known to fit the image's.
  expect_not_fused(
      [](const Tensors& x) {
        const Tensor pixels = cast(image::decode_jpeg(x[0]), DType::kFloat) * x[1];
        return Tensors{image::resize(pixels, {20, 37})};
      },
      {jpeg(75, 101), numbers({3}, 1)});
}

TEST(FuseImages, DecodesWhateverTheBytesAre) {
  std::string bmp = {'B', 'M'};  // 3 x 2 pixels of 24 bits
  const auto put = [&](std::uint32_t value, int size) {
    for (int i = 0; i < size; ++i) bmp += static_cast<char>(value >> (8 * i) & 255);
  };
  for (const std::uint32_t field : {78u, 0u, 54u, 40u, 3u, 2u}) put(field, 4);
  put(1, 2);
  put(24, 2);
  for (const std::uint32_t field : {0u, 24u, 0u, 0u, 0u, 0u}) put(field, 4);
  for (std::uint32_t i = 0; i < 24; ++i) put(i * 11, 1);
  const Body body = [](const Tensors& x) {
    const Tensor pixels = image::decode_image(x[0], 3, uint8, false);
    return Tensors{image::resize(pixels, {7, 9}) / 255.0f};
  };
  for (const Tensor& contents :
       {Tensor(bmp), jpeg(30, 40), image::encode_png(picture({5, 6, 3}))}) {
    expect_fused(body, {contents}, kDecode);
  }
  const Body png = [](const Tensors& x) {
    return Tensors{image::resize(image::decode_png(x[0], 1), {7, 9}) / 255.0f};
  };
  expect_fused(png, {jpeg(30, 40)}, kDecode);
  expect_fused(png, {image::encode_png(picture({5, 6, 3}))}, kDecode);
  // Floats in [0, 1] are no bytes to be resized.
  expect_not_fused(
      [](const Tensors& x) {
        return Tensors{image::resize(image::decode_image(x[0], 3, float32, false), {7, 9})};
      },
      {jpeg(30, 40)});
}

// ---- The smallest image that suffices ----

TEST(FuseImages, DecodesToTheLeastSizeAskedFor) {
  const Tensor contents = jpeg(250, 411);
  const auto decoded = [&](std::int64_t height, std::int64_t width) {
    return image::decode_jpeg(contents, {.least_size = {height, width}}).array();
  };
  const auto divided = [&](std::int64_t ratio) {
    return image::decode_jpeg(contents, {.ratio = ratio}).array();
  };
  EXPECT_TRUE(same_bits(decoded(1, 1), divided(8)));
  EXPECT_TRUE(same_bits(decoded(32, 52), divided(8)));  // sizes are rounded up
  EXPECT_TRUE(same_bits(decoded(33, 52), divided(4)));
  EXPECT_TRUE(same_bits(decoded(32, 53), divided(4)));
  EXPECT_TRUE(same_bits(decoded(64, 53), divided(2)));
  EXPECT_TRUE(same_bits(decoded(126, 1), divided(1)));
  EXPECT_TRUE(same_bits(decoded(1000, 1000), divided(1)));
  const Body body = [](const Tensors& x) {
    const Tensor pixels = image::decode_jpeg(x[0], {.channels = 3, .least_size = {60, 60}});
    return Tensors{image::resize(pixels, {60, 60}) / 255.0f};
  };
  expect_fused(body, {contents}, kDecode);
  expect_fused(body, {image::encode_png(picture({250, 411, 3}))}, kDecode);
  for (const image::DecodeJpegOptions& wrong : {image::DecodeJpegOptions{.least_size = {0, 5}},
                                                {.least_size = {-1, -1}},
                                                {.ratio = 2, .least_size = {5, 5}}}) {
    EXPECT_THROW(image::decode_jpeg(contents, wrong), InvalidArgumentError);
  }
  EXPECT_THROW(image::decode_and_crop_jpeg(contents, Tensor{0, 0, 5, 5}, {.least_size = {5, 5}}),
               InvalidArgumentError);
}

TEST(FuseImages, DecodedImagesThatOthersReadStayWhole) {
  const Body body = [](const Tensors& x) {
    const Tensor pixels = image::decode_jpeg(x[0], {.channels = 3});
    return Tensors{image::resize(pixels, {24, 32}), shape(pixels)};
  };
  expect_not_fused(body, {jpeg(20, 20)});
}

// ---- Images that are not whole ----

TEST(FuseImages, MissingLinesAreMadeUpAlike) {
  for (const bool progressive : {false, true}) {
    const Tensor contents = jpeg(120, 90, 3, {.progressive = progressive});
    for (const double share : {0.35, 0.6, 0.95}) {
      for (const bool recover : {false, true}) {
        if (progressive && !recover) continue;  // its lines come after the last byte, or never
        SCOPED_TRACE(cat(progressive, share, recover));
        const Body body = [&](const Tensors& x) {
          const Tensor pixels = image::decode_jpeg(
              x[0], {.try_recover_truncated = recover, .acceptable_fraction = 0.01f});
          return Tensors{image::resize(pixels, {64, 200}) / 255.0f};
        };
        expect_fused(body, {without_end(contents, share)}, kDecode);
      }
    }
  }
}

std::string failure(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "no error";
}

// Up to the end of the line: what follows names node and op.
std::string reason(const std::string& text, const std::string& from) {
  const std::size_t begin = text.find(from);
  if (begin == std::string::npos) return text;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(FuseImages, ErrorsAreThoseOfDecoding) {
  std::string lying = jpeg(8, 8).item<std::string>();
  const std::size_t frame = lying.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  lying[frame + 5] = lying[frame + 7] = '\x20';
  const std::pair<Tensor, std::string> cases[] = {
      {without_end(jpeg(60, 60), 0.6), "Invalid JPEG data"},
      {without_end(jpeg(60, 60, 3, {.progressive = true}), 0.6), "Invalid JPEG data"},
      {without_end(jpeg(60, 60), 0.05), "Invalid JPEG data"},
      {Tensor(lying), "Invalid JPEG data"},
      {Tensor(std::string()), "Input is empty"},
      {Tensor(std::string("GIF89a")), "Invalid GIF data"},
      {Tensor(std::string("RIFF....WEBP")), "WebP images are not supported"},
      {Tensor(std::string("BM567890")), "Trying to decode BMP"}};
  const auto body = [](Tensor contents) {
    return image::resize(image::decode_jpeg(std::move(contents)), {24, 32}) / 255.0f;
  };
  const auto traced = function(body);
  for (const auto& [contents, what] : cases) {
    const std::string reported = failure([&, &bytes = contents] { traced(bytes).array(); });
    const std::string single = failure([&, &bytes = contents] { body(bytes).array(); });
    EXPECT_THAT(single, HasSubstr(what));
    EXPECT_EQ(reason(reported, what), reason(single, what));
  }
  const Tensor contents = jpeg(20, 20);
  const auto to_size = function([](Tensor bytes, Tensor size) {
    return image::resize(image::decode_jpeg(std::move(bytes)), std::move(size));
  });
  EXPECT_THAT(failure([&] {
                to_size(contents, Tensor{0, 5}).array();
              }),
              HasSubstr("output dimensions must be positive"));
}

// Whatever the bytes, both ways give the same pixels or the same error.
TEST(FuseImages, DamagedImagesFailAlike) {
  const auto body = [](Tensor contents) {
    return image::resize(image::decode_jpeg(std::move(contents)), {24, 32}) / 255.0f;
  };
  const auto traced = function(body);
  std::uint32_t state = 1;
  const auto next = [&](std::size_t below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<std::size_t>(state >> 8) % below;
  };
  int failed = 0, decoded = 0;
  for (const bool progressive : {false, true}) {
    const std::string whole =
        jpeg(50, 70, 3, {.quality = 80, .progressive = progressive}).item<std::string>();
    for (int round = 0; round < 300; ++round) {
      std::string bytes = whole;
      for (std::size_t n = 1 + next(4); n > 0; --n)
        bytes[2 + next(bytes.size() - 2)] = static_cast<char>(next(256));
      Array single, fused;
      const std::string single_error = failure([&] { single = body(Tensor(bytes)).array(); });
      const std::string fused_error = failure([&] { fused = traced(Tensor(bytes)).array(); });
      ASSERT_EQ(single_error.substr(0, single_error.find('\n')),
                fused_error.substr(0, fused_error.find('\n')));
      if (single_error != "no error") {
        ++failed;
        continue;
      }
      ASSERT_TRUE(same_bits(single, fused));
      ++decoded;
    }
  }
  EXPECT_GT(failed, 50);
  EXPECT_GT(decoded, 50);
}

// ---- Memory ----

TEST(FuseImages, LargeImagesAreNeverThereAsAWhole) {
  const Tensor contents = image::encode_jpeg(zeros({3000, 4000, 3}, DType::kUint8));
  const auto peak = [&](bool fusion) {
    config::optimizer::set_experimental_options({.image_fusion = fusion});
    const auto run = function([](Tensor bytes) {
      return image::resize(image::decode_jpeg(std::move(bytes), {.channels = 3}), {224, 224}) /
             255.0f;
    });
    (void)run(jpeg(8, 8)).array();
    config::reset_memory_stats("CPU:0");
    const std::size_t before = config::get_memory_info("CPU:0").current;
    (void)run(contents).array();
    return config::get_memory_info("CPU:0").peak - before;
  };
  const std::size_t fused = peak(true), single = peak(false);
  config::optimizer::set_experimental_options({});
  EXPECT_GT(single, std::size_t{36'000'000});
  EXPECT_LT(fused, std::size_t{1'500'000});
}

}  // namespace
}  // namespace tandem

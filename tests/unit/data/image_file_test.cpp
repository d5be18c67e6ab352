#include "tandem/data/image_file.h"

#include <cstdio>

#include <gmock/gmock.h>

#include "tandem/data/contact_sheet.h"
#include "tandem/data/digits.h"
#include "tandem/fs/file_system.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;

Tensor pattern(std::int64_t height, std::int64_t width, std::int64_t channels) {
  Array image(uint8, {height, width, channels});
  for (std::int64_t i = 0; i < image.num_elements(); ++i) {
    image.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
  }
  return Tensor(image);
}

TEST(Png, ComesBackAsItWas) {
  for (const std::int64_t channels : {1, 3, 4}) {
    const Tensor image = pattern(5, 7, channels);
    EXPECT_EQ(decode_png(encode_png(image), "bytes").array(), image.array()) << channels;
  }
  const std::string path = ::testing::TempDir() + "/tandem_png_test.png";
  write_png(path, pattern(31, 1, 3));
  EXPECT_EQ(read_png(path).array(), pattern(31, 1, 3).array());
  std::remove(path.c_str());
}

TEST(Png, KeepsGreyAndAlpha) {
  Array image(uint8, {1, 3, 2});
  const std::uint8_t values[] = {10, 255, 200, 255, 0, 0};
  std::copy(std::begin(values), std::end(values), image.data<std::uint8_t>());
  EXPECT_EQ(decode_png(encode_png(Tensor(image)), "bytes").array(), image);
}

TEST(Png, RefusesWhatIsNoImage) {
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] {
                encode_png(Tensor{{1, 2}, {3, 4}});
              }),
              HasSubstr("must be uint8 of shape [height,width,channels] with 1 to 4 channels, got "
                        "int32[2,2]"));
  EXPECT_THROW(encode_png(pattern(2, 2, 5)), InvalidArgumentError);
  EXPECT_THROW(encode_png(Tensor(Array(uint8, {2, 2, 0}))), InvalidArgumentError);
  EXPECT_THROW(encode_png(Tensor(Array(uint8, {0, 2, 3}))), InvalidArgumentError);
  EXPECT_THROW(write_png("no/such/folder/x.png", pattern(1, 1, 1)), NotFoundError);
}

TEST(Png, SaysWhichFileIsDamaged) {
  const std::string bytes = encode_png(pattern(40, 40, 3));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{4}, std::size_t{30}, bytes.size() / 2}) {
    EXPECT_THAT(
        message_of_thrown<DataLossError>([&] { decode_png(bytes.substr(0, size), "a.png"); }),
        HasSubstr("a.png: no PNG image, or a damaged one"))
        << size;
  }
  std::string flipped = bytes;
  flipped[bytes.size() / 2] = static_cast<char>(flipped[bytes.size() / 2] ^ 0x55);
  EXPECT_THROW(decode_png(flipped, "a.png"), DataLossError);
  EXPECT_THROW(read_png("no/such.png"), NotFoundError);
}

TEST(ContactSheet, ShowsImagesAndCaptions) {
  const auto [images, labels] = [] {
    auto element = digits("examples/data/digits.csv.gz").batch(7).iterator().next();
    return std::pair(element[0], element[1]);
  }();
  Array predictions = labels.array().clone();
  const auto all_right = render_digits(images, labels, Tensor(predictions.clone()), 4);
  EXPECT_EQ(all_right.dtype(), uint8);
  EXPECT_EQ(all_right.shape(), (Shape{2 * (56 + 20 + 8) + 8, 4 * 64 + 8, 3}));
  const auto red = [](const Tensor& picture) {
    int count = 0;
    const auto pixels = picture.data<std::uint8_t>();
    for (std::size_t i = 0; i < pixels.size(); i += 3)
      count += pixels[i] == 190 && pixels[i + 1] == 30;
    return count;
  };
  EXPECT_EQ(red(all_right), 0);
  predictions.data<std::int32_t>()[2] = (predictions.data<std::int32_t>()[2] + 1) % 10;
  EXPECT_GT(red(render_digits(images, labels, Tensor(predictions), 4)), 20);
}

TEST(ContactSheet, DrawsPixelsAndGlyphsWhereTheyBelong) {
  const Tensor image = Tensor::from(std::vector<float>{0, 0.5f, 2, -1}, {1, 2, 2});
  const Tensor picture = render_digits(image, Tensor{1}, Tensor{1}, 10);
  ASSERT_EQ(picture.shape(), (Shape{8 + 56 + 20 + 8, 72, 3}));
  const auto grey = [&](std::int64_t y, std::int64_t x) {
    return static_cast<int>(picture.at<std::uint8_t>({y, x, 0}));
  };
  EXPECT_EQ(grey(8, 8), 0);
  EXPECT_EQ(grey(8, 8 + 28), 128);
  EXPECT_EQ(grey(8 + 28, 8), 255);
  EXPECT_EQ(grey(8 + 28, 8 + 28), 0);
  EXPECT_EQ(grey(7, 8), 250) << "paper";
  // The foot of the "1" is five pixels of two wide, in the middle.
  const std::int64_t foot = 8 + 56 + 4 + 12;
  for (std::int64_t x = 0; x < 72; ++x) EXPECT_EQ(grey(foot, x), x >= 31 && x < 41 ? 20 : 250) << x;
}

TEST(ContactSheet, RefusesTensorsThatDoNotFit) {
  const Tensor image = Tensor::from(std::vector<float>(4), {1, 2, 2});
  EXPECT_THROW(render_digits(image, Tensor{1, 2}, Tensor{1}, 1), InvalidArgumentError);
  EXPECT_THROW(render_digits(image, Tensor{1}, Tensor{1.5}, 1), InvalidArgumentError);
  EXPECT_THROW(render_digits(image, Tensor{1}, Tensor{1}, 0), InvalidArgumentError);
  EXPECT_THROW(render_digits(Tensor{1.0}, Tensor{1}, Tensor{1}, 1), InvalidArgumentError);
  EXPECT_THROW(render_digits(Tensor(Array(float32, {0, 2, 2})), Tensor(Array(int32, {0})),
                             Tensor(Array(int32, {0})), 1),
               InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::data

#include "tandem/keras/image_dataset.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/runtime/runtime.h"

namespace tandem::keras::utils {
namespace {

using ::testing::HasSubstr;
namespace stdfs = std::filesystem;

// The folder of make_image_dataset.py.
class ImageDatasetTest : public ::testing::Test {
 protected:
  ImageDatasetTest() {
    char name[] = "/tmp/image_dataset.XXXXXX";
    folder_ = mkdtemp(name);
    add_image("b_birds/three.png", 0, 6, 9, 3);
    add_image("b_birds/one.PNG", 1, 5, 5, 1);
    add_image("b_birds/deep/two.png", 2, 12, 7, 4);
    add_image("a_apes/9.png", 3, 8, 8, 3);
    add_image("a_apes/10.png", 4, 4, 16, 3);
    fs::write_file(folder_ + "/a_apes/notes.txt", "no image");
    add_image("c_cats/x.png", 6, 10, 10, 3);
    add_image("c_cats/y.png", 7, 7, 5, 3);
    add_image(".hidden/z.png", 8, 3, 3, 3);
  }
  ~ImageDatasetTest() override { stdfs::remove_all(folder_); }

  // The stored orders are those of a process without a global seed.
  Runtime runtime_;
  RuntimeScope scope_{runtime_};

  void add_image(const std::string& name, int number, int height, int width, int channels) {
    const std::string path = folder_ + "/" + name;
    stdfs::create_directories(stdfs::path(path).parent_path());
    Array pixels(DType::kUint8, {height, width, channels});
    auto* at = pixels.data<std::uint8_t>();
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < channels; ++c) {
          *at++ = static_cast<std::uint8_t>((number * 31 + y * 17 + x * 29 + c * 53) % 256);
        }
      }
    }
    fs::write_file(path, image::encode_png(Tensor(std::move(pixels))).item<std::string>());
  }

  ImageDataset dataset(ImageDatasetOptions options) const {
    options.verbose = false;
    return image_dataset_from_directory(folder_, options);
  }

  std::string folder_;
};

std::string label_text(const Tensor& label) {
  std::ostringstream out;
  const bool is_float = label.dtype() == DType::kFloat;
  out << (is_float ? "float32:" : "int32:");
  if (label.rank() == 0) {
    out << label.item<std::int32_t>();
    return out.str();
  }
  const float* at = label.array().data<float>();
  for (std::int64_t i = 0; i < label.dim(0); ++i) out << (i ? "," : "[") << at[i] << ".0";
  out << "]";
  return out.str();
}

std::vector<float> ten_values(const Array& image) {
  std::vector<float> out;
  const std::int64_t last = image.num_elements() - 1;
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::int64_t at = i * last / 9;
    out.push_back(image.dtype() == DType::kUint8 ? image.data<std::uint8_t>()[at]
                                                 : image.data<float>()[at]);
  }
  return out;
}

// The cases that image_dataset.txt has, by name.
std::map<std::string, std::vector<std::string>> expected_cases() {
  std::map<std::string, std::vector<std::string>> all;
  std::ifstream file("tests/unit/keras/expected/image_dataset.txt");
  std::string line, name;
  while (std::getline(file, line)) {
    if (line.starts_with("= ")) {
      name = line.substr(2);
    } else {
      all[name].push_back(line);
    }
  }
  return all;
}

std::string after_word(const std::string& line) {
  const auto at = line.find(' ');
  return at == std::string::npos ? "" : line.substr(at + 1);
}

std::string joined(const std::vector<std::string>& names, std::size_t drop = 0) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : " ") + name.substr(drop);
  return all;
}

// One line of the file against an element.
void expect_element(const std::string& line, const data::Element& element) {
  std::istringstream in(line);
  std::string label, shape;
  in >> label >> shape;
  EXPECT_EQ(element.size() == 1 ? "-" : label_text(element[1]), label);
  const Array& image = element[0].array();
  std::string sides;
  for (const std::int64_t dim : image.shape().dims()) {
    sides += (sides.empty() ? "" : "x") + std::to_string(dim);
  }
  ASSERT_EQ(sides, shape);
  for (const float ours : ten_values(image)) {
    float theirs = NAN;
    in >> theirs;
    EXPECT_NEAR(ours, theirs, 255 * 1e-5) << line;
  }
}

TEST_F(ImageDatasetTest, EqualsKeras) {
  const ImageDatasetOptions plain{.image_size = {4, 6}, .shuffle = false};
  const auto with = [&](auto change) {
    ImageDatasetOptions options = plain;
    change(options);
    return options;
  };
  using O = ImageDatasetOptions;
  const std::map<std::string, ImageDatasetOptions> cases = {
      {"plain", plain},
      {"shuffled", {.batch_size = 3, .image_size = {4, 6}, .seed = 7}},
      {"shuffled_single", {.batch_size = std::nullopt, .image_size = {4, 6}, .seed = 123456}},
      {"categorical", with([](O& o) {
         o.label_mode = "categorical";
         o.interpolation = "nearest";
       })},
      {"binary", with([](O& o) {
         o.label_mode = "binary";
         o.class_names = {"c_cats", "a_apes"};
       })},
      {"no_labels", with([](O& o) {
         o.labels = std::nullopt;
         o.color_mode = "grayscale";
       })},
      {"no_mode",
       {.label_mode = std::nullopt, .color_mode = "rgba", .image_size = {4, 6}, .seed = 3}},
      {"list", with([](O& o) { o.labels = std::vector<std::int32_t>{4, 5, 5, 4, 7, 7, 5, 4}; })},
      {"training",
       {.image_size = {4, 6}, .seed = 11, .validation_split = 0.4, .subset = "training"}},
      {"validation",
       {.image_size = {4, 6}, .seed = 11, .validation_split = 0.4, .subset = "validation"}},
      {"crop", with([](O& o) { o.crop_to_aspect_ratio = true; })},
      {"crop_bicubic", with([](O& o) {
         o.crop_to_aspect_ratio = true;
         o.interpolation = "bicubic";
         o.image_size = {9, 5};
       })},
      {"pad", with([](O& o) { o.pad_to_aspect_ratio = true; })},
      {"area", with([](O& o) { o.interpolation = "Area"; })},
      {"lanczos", with([](O& o) { o.interpolation = "lanczos3"; })},
  };
  auto expected = expected_cases();
  for (const auto& [name, options] : cases) {
    SCOPED_TRACE(name);
    const std::vector<std::string>& lines = expected[name];
    const ImageDataset images = dataset(options);
    ASSERT_GT(lines.size(), 2u);
    EXPECT_EQ(joined(images.class_names), after_word(lines[0]));
    EXPECT_EQ(joined(images.file_paths, folder_.size() + 1), after_word(lines[1]));
    std::size_t at = 2;
    for (const data::Element& element :
         options.batch_size ? images.unbatch() : data::Dataset(images)) {
      ASSERT_LT(at, lines.size());
      expect_element(lines[at++], element);
    }
    EXPECT_EQ(at, lines.size());
  }
}

TEST_F(ImageDatasetTest, ErrorsAreKeras) {
  const std::map<std::string, ImageDatasetOptions> cases = {
      {"wrong_mode", {.label_mode = "one_hot"}},
      {"wrong_color", {.color_mode = "bgr"}},
      {"wrong_method", {.interpolation = "cubic"}},
      {"wrong_classes", {.class_names = {"a_apes", "dogs"}}},
      {"wrong_count", {.labels = std::vector<std::int32_t>{1, 2, 3}}},
      {"classes_without", {.labels = std::nullopt, .class_names = {"a_apes"}}},
      {"classes_with_list", {.labels = std::vector<std::int32_t>{1, 2}, .class_names = {"a_apes"}}},
      {"three_binary", {.label_mode = "binary"}},
      {"split_alone", {.validation_split = 0.5}},
      {"split_large", {.seed = 1, .validation_split = 1.5, .subset = "training"}},
      {"split_no_seed", {.validation_split = 0.5, .subset = "training"}},
      {"wrong_subset", {.seed = 1, .validation_split = 0.5, .subset = "test"}},
      {"both_aspects", {.crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true}},
  };
  auto expected = expected_cases();
  for (const auto& [name, options] : cases) {
    SCOPED_TRACE(name);
    ASSERT_EQ(expected[name].size(), 1u);
    std::string theirs = expected[name][0].substr(2);
    if (const auto at = theirs.find("DIR"); at != std::string::npos) theirs.replace(at, 3, folder_);
    try {
      dataset(options);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const InvalidArgumentError& error) {
      EXPECT_EQ(error.what(), theirs);
    }
  }
  EXPECT_THROW(dataset({.seed = -1}), InvalidArgumentError);
  EXPECT_THROW(dataset({.batch_size = 0}), InvalidArgumentError);
  EXPECT_THROW(dataset({.image_size = {0, 3}}), InvalidArgumentError);
  EXPECT_THROW(dataset({.seed = 1, .validation_split = .1, .subset = "both"}),
               InvalidArgumentError);
  EXPECT_THROW(image_dataset_from_directory(folder_ + "/missing"), NotFoundError);
}

TEST_F(ImageDatasetTest, BothSubsetsShareNoFile) {
  const auto [training, validation] = image_datasets_from_directory(
      folder_, {.image_size = {2, 2}, .seed = 5, .validation_split = 0.3, .verbose = false});
  EXPECT_EQ(training.file_paths.size(), 5u);
  EXPECT_EQ(validation.file_paths.size(), 2u);
  for (const std::string& path : validation.file_paths) {
    EXPECT_THAT(training.file_paths, ::testing::Not(::testing::Contains(path)));
  }
  EXPECT_EQ(training.class_names, validation.class_names);
  EXPECT_EQ(training.element_spec().size(), 2u);
  EXPECT_EQ(training.cardinality(), 1);
  // A part too small for a file leaves all to the training.
  const ImageDatasetOptions tiny{.image_size = {2, 2},
                                 .seed = 5,
                                 .validation_split = 0.1,
                                 .subset = "training",
                                 .verbose = false};
  EXPECT_EQ(image_dataset_from_directory(folder_, tiny).file_paths.size(), 7u);
}

TEST_F(ImageDatasetTest, LinksAreFollowedIfAsked) {
  stdfs::create_directory_symlink(folder_ + "/b_birds/deep", folder_ + "/c_cats/linked");
  stdfs::create_directory_symlink(folder_ + "/c_cats", folder_ + "/c_cats/round");
  EXPECT_EQ(dataset({}).file_paths.size(), 7u);
  EXPECT_EQ(dataset({.follow_links = true}).file_paths.size(), 8u);
}

// Later epochs, too, are those that would have followed, also where it is the first of two.
TEST_F(ImageDatasetTest, IterationsAreSavedAndRestored) {
  const auto make = [&] {
    const data::Dataset images = dataset({.batch_size = 2, .image_size = {2, 2}, .seed = 3});
    return images.concatenate(images.take(1)).repeat(3);
  };
  const auto labels = [](data::Iterator& it, std::size_t limit) {
    std::vector<std::string> all;
    data::Element element;
    while (all.size() < limit && it.next(element)) all.push_back(element[1].to_string());
    return all;
  };
  auto whole = make().iterator();
  const std::size_t count = labels(whole, 1000).size();
  ASSERT_GT(count, 6u);
  for (std::size_t stop = 0; stop <= count; ++stop) {
    auto it = make().iterator();
    labels(it, stop);
    const std::string saved = it.save();
    auto restored = make().iterator();
    labels(restored, 1);
    restored.restore(saved);
    EXPECT_EQ(labels(restored, 1000), labels(it, 1000)) << "saved after " << stop;
  }
}

TEST_F(ImageDatasetTest, ErrorsNameTheFile) {
  fs::write_file(folder_ + "/a_apes/a_broken.png", "\x89PNG no more");
  const ImageDataset images =
      dataset({.batch_size = std::nullopt, .image_size = {2, 2}, .shuffle = false});
  auto it = images.iterator();
  EXPECT_EQ(it.next().size(), 2u);
  EXPECT_EQ(it.next().size(), 2u);
  try {
    it.next();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a_apes/a_broken.png"));
    EXPECT_THAT(error.what(), HasSubstr("element 2"));
  }
  EXPECT_EQ(it.next()[1].item<std::int32_t>(), 1);  // goes on behind it
  stdfs::remove(folder_ + "/a_apes/9.png");
  auto gone = images.iterator();
  gone.next();
  EXPECT_THROW(gone.next(), NotFoundError);
}

}  // namespace
}  // namespace tandem::keras::utils

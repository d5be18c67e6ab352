#include "tests/reference/image/calls.h"

#include <functional>
#include <map>
#include <stdexcept>

#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/ops/image_filter_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/image_stateless_ops.h"
#include "tandem/ops/image_transform_ops.h"
#include "tandem/ops/random_ops.h"

namespace reference {
namespace {

using tandem::DType;
using tandem::Tensor;
using Json = nlohmann::json;
namespace image = tandem::image;

struct Args {
  const Json& json;
  const std::vector<Tensor>& in;

  template <class T>
  T get(const char* name, T otherwise) const {
    return json.contains(name) ? json[name].get<T>() : otherwise;
  }
  std::int64_t integer(const char* name, std::int64_t otherwise = 0) const {
    return get<std::int64_t>(name, otherwise);
  }
  float real(const char* name, float otherwise = 0) const { return get<float>(name, otherwise); }
  std::string text(const char* name, const char* otherwise = "") const {
    return get<std::string>(name, otherwise);
  }
  bool flag(const char* name, bool otherwise = false) const { return get<bool>(name, otherwise); }
  std::vector<std::int64_t> sizes() const { return get<std::vector<std::int64_t>>("size", {}); }
  DType dtype() const {
    const auto found = tandem::parse_dtype(text("dtype", "uint8"));
    if (!found) throw std::runtime_error("unknown dtype " + text("dtype"));
    return *found;
  }
  image::Seed seed() const {
    tandem::random::set_seed(7);
    return json["seed"].get<std::int64_t>();
  }
  std::vector<std::int64_t> seeds() const { return get<std::vector<std::int64_t>>("seed", {}); }
  const Tensor& x() const { return in[0]; }
};

using Function = std::function<Tensor(const Args&)>;
using Table = std::map<std::string, Function>;

image::DecodeJpegOptions jpeg_options(const Args& a) {
  return {.channels = a.integer("channels"),
          .ratio = a.integer("ratio", 1),
          .fancy_upscaling = a.flag("fancy_upscaling", true),
          .try_recover_truncated = a.flag("try_recover_truncated"),
          .acceptable_fraction = a.real("acceptable_fraction", 1),
          .dct_method = a.text("dct_method")};
}

image::EncodeJpegOptions encoding(const Args& a) {
  return {.quality = a.integer("quality", 95),
          .progressive = a.flag("progressive"),
          .optimize_size = a.flag("optimize_size"),
          .chroma_downsampling = a.flag("chroma_downsampling", true),
          .density_unit = a.text("density_unit", "in"),
          .x_density = a.integer("x_density", 300),
          .y_density = a.integer("y_density", 300),
          .xmp_metadata = a.text("xmp_metadata")};
}

void add_codecs(Table& t) {
  t["decode_jpeg"] = [](const Args& a) { return image::decode_jpeg(a.x(), jpeg_options(a)); };
  t["decode_and_crop_jpeg"] = [](const Args& a) {
    return image::decode_and_crop_jpeg(a.x(), a.in[1]);
  };
  t["extract_jpeg_shape"] = [](const Args& a) { return image::extract_jpeg_shape(a.x()); };
  t["decode_png"] = [](const Args& a) {
    return image::decode_png(a.x(), a.integer("channels"), a.dtype());
  };
  t["decode_gif"] = [](const Args& a) { return image::decode_gif(a.x()); };
  t["decode_bmp"] = [](const Args& a) { return image::decode_bmp(a.x(), a.integer("channels")); };
  t["decode_image"] = [](const Args& a) {
    return image::decode_image(a.x(), a.integer("channels"), a.dtype(),
                               a.flag("expand_animations", true));
  };
  t["encode_jpeg"] = [](const Args& a) { return image::encode_jpeg(a.x(), encoding(a)); };
}

void add_transforms(Table& t) {
  t["resize"] = [](const Args& a) {
    const std::string method = a.text("method", "bilinear");
    return image::resize(a.x(), a.sizes(),
                         {.method = method,
                          .preserve_aspect_ratio = a.flag("preserve_aspect_ratio"),
                          .antialias = a.flag("antialias")});
  };
  t["resize_with_pad"] = [](const Args& a) {
    return image::resize_with_pad(a.x(), a.integer("target_height"), a.integer("target_width"));
  };
  t["resize_with_crop_or_pad"] = [](const Args& a) {
    return image::resize_with_crop_or_pad(a.x(), a.integer("target_height"),
                                          a.integer("target_width"));
  };
  const auto boxed = [](auto function) {
    return [function](const Args& a) {
      return function(a.x(), a.integer("offset_height"), a.integer("offset_width"),
                      a.integer("target_height"), a.integer("target_width"));
    };
  };
  t["crop_to_bounding_box"] = boxed(image::crop_to_bounding_box);
  t["pad_to_bounding_box"] = boxed(image::pad_to_bounding_box);
  t["central_crop"] = [](const Args& a) {
    return image::central_crop(a.x(), a.json["central_fraction"].get<double>());
  };
  t["flip_left_right"] = [](const Args& a) { return image::flip_left_right(a.x()); };
  t["flip_up_down"] = [](const Args& a) { return image::flip_up_down(a.x()); };
  t["transpose"] = [](const Args& a) { return image::transpose(a.x()); };
  t["rot90"] = [](const Args& a) { return image::rot90(a.x(), a.integer("k")); };
}

void add_adjustments(Table& t) {
  t["convert_image_dtype"] = [](const Args& a) {
    return image::convert_image_dtype(a.x(), a.dtype(), a.flag("saturate"));
  };
  t["adjust_brightness"] = [](const Args& a) {
    return image::adjust_brightness(a.x(), a.real("delta"));
  };
  t["adjust_contrast"] = [](const Args& a) {
    return image::adjust_contrast(a.x(), a.real("contrast_factor"));
  };
  t["adjust_hue"] = [](const Args& a) { return image::adjust_hue(a.x(), a.real("delta")); };
  t["adjust_saturation"] = [](const Args& a) {
    return image::adjust_saturation(a.x(), a.real("saturation_factor"));
  };
  t["adjust_gamma"] = [](const Args& a) { return image::adjust_gamma(a.x(), a.real("gamma")); };
  t["adjust_jpeg_quality"] = [](const Args& a) {
    return image::adjust_jpeg_quality(a.x(), static_cast<int>(a.integer("jpeg_quality")));
  };
  t["rgb_to_grayscale"] = [](const Args& a) { return image::rgb_to_grayscale(a.x()); };
  t["grayscale_to_rgb"] = [](const Args& a) { return image::grayscale_to_rgb(a.x()); };
  t["per_image_standardization"] = [](const Args& a) {
    return image::per_image_standardization(a.x());
  };
  t["rgb_to_hsv"] = [](const Args& a) { return image::rgb_to_hsv(a.x()); };
  t["hsv_to_rgb"] = [](const Args& a) { return image::hsv_to_rgb(a.x()); };
  t["total_variation"] = [](const Args& a) { return image::total_variation(a.x()); };
  t["sobel_edges"] = [](const Args& a) { return image::sobel_edges(a.x()); };
  t["draw_bounding_boxes"] = [](const Args& a) {
    return image::draw_bounding_boxes(a.x(), a.in[1], a.in[2]);
  };
}

void add_draws(Table& t) {
  t["random_flip_left_right"] = [](const Args& a) {
    return image::random_flip_left_right(a.x(), a.seed());
  };
  t["random_flip_up_down"] = [](const Args& a) {
    return image::random_flip_up_down(a.x(), a.seed());
  };
  t["random_crop"] = [](const Args& a) { return image::random_crop(a.x(), a.sizes(), a.seed()); };
  t["random_brightness"] = [](const Args& a) {
    return image::random_brightness(a.x(), a.real("max_delta"), a.seed());
  };
  t["random_hue"] = [](const Args& a) {
    return image::random_hue(a.x(), a.real("max_delta"), a.seed());
  };
  t["random_contrast"] = [](const Args& a) {
    return image::random_contrast(a.x(), a.real("lower"), a.real("upper"), a.seed());
  };
  t["random_saturation"] = [](const Args& a) {
    return image::random_saturation(a.x(), a.real("lower"), a.real("upper"), a.seed());
  };
  t["random_jpeg_quality"] = [](const Args& a) {
    return image::random_jpeg_quality(a.x(), static_cast<int>(a.integer("min_jpeg_quality")),
                                      static_cast<int>(a.integer("max_jpeg_quality")), a.seed());
  };
}

void add_stateless_draws(Table& t) {
  t["stateless_random_flip_left_right"] = [](const Args& a) {
    return image::stateless_random_flip_left_right(a.x(), a.seeds());
  };
  t["stateless_random_flip_up_down"] = [](const Args& a) {
    return image::stateless_random_flip_up_down(a.x(), a.seeds());
  };
  t["stateless_random_crop"] = [](const Args& a) {
    return image::stateless_random_crop(a.x(), a.sizes(), a.seeds());
  };
  t["stateless_random_brightness"] = [](const Args& a) {
    return image::stateless_random_brightness(a.x(), a.real("max_delta"), a.seeds());
  };
  t["stateless_random_hue"] = [](const Args& a) {
    return image::stateless_random_hue(a.x(), a.real("max_delta"), a.seeds());
  };
  t["stateless_random_contrast"] = [](const Args& a) {
    return image::stateless_random_contrast(a.x(), a.real("lower"), a.real("upper"), a.seeds());
  };
  t["stateless_random_saturation"] = [](const Args& a) {
    return image::stateless_random_saturation(a.x(), a.real("lower"), a.real("upper"), a.seeds());
  };
  t["stateless_random_jpeg_quality"] = [](const Args& a) {
    return image::stateless_random_jpeg_quality(
        a.x(), static_cast<int>(a.integer("min_jpeg_quality")),
        static_cast<int>(a.integer("max_jpeg_quality")), a.seeds());
  };
}

const Table& table() {
  static const Table functions = [] {
    Table t;
    add_codecs(t);
    add_transforms(t);
    add_adjustments(t);
    add_draws(t);
    add_stateless_draws(t);
    return t;
  }();
  return functions;
}

}  // namespace

std::vector<Tensor> call_image_function(const std::string& name, const Json& args,
                                        const std::vector<Tensor>& inputs) {
  if (name == "image_gradients") {
    const auto [dy, dx] = image::image_gradients(inputs[0]);
    return {dy, dx};
  }
  const auto found = table().find(name);
  if (found == table().end()) throw std::runtime_error("no function named " + name);
  return {found->second(Args{args, inputs})};
}

}  // namespace reference

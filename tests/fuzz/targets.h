#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/csv.h"
#include "tandem/core/error.h"
#include "tandem/data/file_datasets.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/record_file.h"
#include "tandem/io/event_file.h"
#include "tandem/io/event_store.h"
#include "tandem/io/example.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/graph_export.h"
#include "tandem/io/npy.h"
#include "tandem/io/safetensors.h"
#include "tandem/io/summary.h"
#include "tandem/io/tensor_bundle.h"
#include "tandem/keras/serialization.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/example_ops.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/ops/sequence_example_ops.h"
#include "tandem/saved_model/load.h"
#include "tandem/train/checkpoint_state.h"

/// What the fuzz targets do with an input: whatever the bytes, a value or an Error comes of it.
namespace tandem::fuzz {

/// What was read and could be written can be read again.
inline void graph_def(std::string_view bytes) {
  for (const auto format : {io::GraphFormat::kBinary, io::GraphFormat::kText}) {
    for (const bool allow_unsupported : {false, true}) {
      io::ImportOptions options;
      options.format = format;
      options.allow_unsupported = allow_unsupported;
      std::string written;
      try {
        written = io::export_graph_def(io::import_graph_def(bytes, options), format).bytes;
      } catch (const Error&) {
        continue;
      }
      io::import_graph_def(written, options);
    }
  }
}

inline void npy(std::string_view bytes) {
  try {
    io::encode_npy(io::decode_npy(bytes, "input"));
  } catch (const Error&) {
  }
  try {
    io::decode_npz(bytes, "input");
  } catch (const Error&) {
  }
}

/// The bytes of saved_model.pb: its objects, and each function that it holds.
inline void saved_model(std::string_view bytes) {
  try {
    const saved_model::Module model = saved_model::load_bytes(bytes, "input");
    for (const std::string& path : model.functions()) {
      const saved_model::Function function = model.function(path);
      for (std::size_t i = 0; i < function.num_traces(); ++i) {
        try {
          function.concrete(i);
        } catch (const Error&) {
        }
      }
    }
    for (const std::string& name : model.signature_names()) {
      try {
        model.signature(name).concrete();
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

inline void safetensors(std::string_view bytes) {
  try {
    const io::SafetensorsReader reader(bytes, "input");
    for (const std::string& name : reader.names()) {
      try {
        reader.read(name);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

/// config.json of a .keras file. A model that says so has weights of any size, which is no fault:
/// what has large numbers in it is left out.
inline void keras_config(std::string_view bytes) {
  std::size_t digits = 0;
  for (const char c : bytes) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 2) return;
  }
  try {
    keras::model_from_json(bytes).to_json();
  } catch (const Error&) {
  }
}

/// The size of the index in four bytes, the index, the data of its only shard.
inline void tensor_bundle(std::string_view bytes) {
  std::uint32_t announced = 0;
  if (bytes.size() < sizeof(announced)) return;
  std::memcpy(&announced, bytes.data(), sizeof(announced));
  bytes.remove_prefix(sizeof(announced));
  const std::string_view index = bytes.substr(0, announced);
  try {
    const io::TensorBundleReader reader(std::string(index), std::string(bytes.substr(index.size())),
                                        "input");
    for (const std::string& name : reader.names()) {
      try {
        reader.read(name);
      } catch (const Error&) {
      }
      try {
        io::TensorSlice slice;
        slice.extents.resize(static_cast<std::size_t>(reader.shape(name).rank()), {0, 1});
        reader.read_slice(name, slice);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

/// The list of a folder's checkpoints.
inline void checkpoint_state(std::string_view bytes) {
  try {
    train::parse_checkpoint_state(bytes, "input");
  } catch (const Error&) {
  }
}

/// A record file, plain and compressed, also past its damage.
inline void record_file(std::string_view bytes) {
  for (const auto compression :
       {fs::Compression::kNone, fs::Compression::kGzip, fs::Compression::kZlib}) {
    for (const bool skip : {false, true}) {
      fs::RecordReaderOptions options;
      options.compression = compression;
      options.skip_corrupt = skip;
      options.max_record_bytes = std::uint64_t{1} << 20;
      try {
        fs::RecordReader reader(bytes, "input", options);
        std::string_view record;
        // Every error passes over a byte or ends the file.
        for (std::size_t errors = 0; errors < bytes.size() + 3;) {
          try {
            if (!reader.next(record)) break;
          } catch (const Error&) {
            if (++errors == bytes.size() + 3) std::abort();
          }
        }
      } catch (const Error&) {
      }
    }
  }
}

/// An event file: the bytes as they are, and as the content of one record with right checksums.
inline void event_file(std::string_view bytes) {
  const auto read_all = [](std::string_view file) {
    io::EventFileReader reader(file, "input");
    for (;;) {
      try {
        if (!reader.next()) return;
      } catch (const Error&) {
      }
    }
  };
  read_all(bytes);
  std::string record;
  const auto put = [&record](const auto& number) {
    record.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  const std::uint64_t size = bytes.size();
  put(size);
  put(fs::mask_crc32c(fs::crc32c({reinterpret_cast<const char*>(&size), sizeof(size)})));
  record += bytes;
  put(fs::mask_crc32c(fs::crc32c(bytes)));
  read_all(record);
}

/// What TensorBoard may ask a process for, by each method.
inline void data_provider(std::string_view bytes) {
  static const io::EventStore store = [] {
    io::EventStore made;
    const auto writer = made.writer("run");
    const auto on = writer.as_default(1);
    summary::scalar("a", 1.0);
    summary::histogram("b", Tensor{1.0, 2.0});
    summary::image("c", zeros({1, 2, 2, 1}));
    writer.flush();
    return made;
  }();
  for (const char* method : {"ListPlugins", "ListRuns", "ListScalars", "ReadScalars", "ListTensors",
                             "ReadTensors", "ListBlobSequences", "ReadBlobSequences", "ReadBlob"}) {
    try {
      store.answer(method, bytes);
    } catch (const Error&) {
    }
  }
}

/// A serialized Example, with features of every form and type asked for.
inline void example(std::string_view bytes) {
  const auto attempt = [](auto parse) {
    try {
      parse();
    } catch (const Error&) {
    }
  };
  attempt([&] { io::Example::parse(io::Example::parse(bytes).serialize()); });
  attempt([&] { io::SequenceExample::parse(io::SequenceExample::parse(bytes).serialize()); });
  for (const DType dtype : {DType::kFloat, DType::kInt64, DType::kString}) {
    const std::string text(bytes);
    for (const io::Feature& feature :
         {io::Feature(io::FixedLenFeature{{2}, dtype}),
          io::Feature(io::FixedLenSequenceFeature{{1}, dtype}),
          io::Feature(io::VarLenFeature{dtype}), io::Feature(io::RaggedFeature{dtype})}) {
      for (const char* key : {"a", "b", "c"}) {
        attempt([&] {
          io::parse_example(Tensor::from(std::vector<std::string>{text, text}), {{key, feature}});
        });
        attempt([&] { io::parse_single_example(Tensor(text), {{key, feature}}); });
        const Tensor two = Tensor::from(std::vector<std::string>{text, text});
        const io::FeatureSpec one{{key, feature}};
        attempt([&] { io::parse_sequence_example(two, {}, one); });
        attempt([&] { io::parse_sequence_example(two, one, {{"d", io::VarLenFeature{dtype}}}); });
        attempt([&] { io::parse_single_sequence_example(Tensor(text), {}, one); });
        attempt([&] { io::parse_single_sequence_example(Tensor(text), one, {}); });
      }
    }
    attempt([&] { io::parse_tensor(Tensor(text), dtype); });
  }
}

/// The elements of a CSV file, and its errors.
inline std::vector<std::string> csv_events(const std::string& path, std::size_t size,
                                           const data::CsvOptions& options) {
  std::vector<std::string> events;
  const data::CsvDataset dataset({path}, {1.5f, data::CsvColumn(int64), "none"}, options);
  data::Iterator iterator = dataset.iterator();
  data::Element element;
  for (;;) {
    // Every record, and the header, takes a byte or ends the file.
    if (events.size() > size + 2) std::abort();
    try {
      if (!iterator.next(element)) return events;
      for (const Tensor& value : element) events.push_back(value.to_string());
    } catch (const Error& error) {
      events.emplace_back(error.what());
    }
  }
}

/// A file has the same elements when it is read in pieces of other sizes.
inline void csv_file(std::string_view bytes) {
  // A file that has no name, and needs no room on a disk.
  const int file = memfd_create("csv", 0);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  for (const bool quotes : {true, false}) {
    for (const bool header : {true, false}) {
      for (const std::size_t most : {0, 20}) {
        data::CsvOptions options;
        options.use_quote_delim = quotes;
        options.header = header;
        options.max_record_bytes = most;
        const auto events = csv_events(path, 3 * bytes.size(), options);
        options.buffer_size = 1;
        if (csv_events(path, 3 * bytes.size(), options) != events) std::abort();
      }
    }
  }
  close(file);
}

/// Comma-separated values: the bytes as one record, and as a file.
inline void csv(std::string_view bytes) {
  csv_file(bytes);
  for (const bool quotes : {true, false}) {
    CsvFormat format;
    format.quotes = quotes;
    format.defaults = {Array::scalar(1.5f), Array(DType::kInt64, Shape{0}),
                       Array::scalar(std::string("none"))};
    const CsvReader reader(format);
    std::vector<std::string> fields;
    try {
      reader.split(bytes, fields);
      for (std::size_t i = 0; i < fields.size() && i < format.defaults.size(); ++i) {
        Array out(format.defaults[i].dtype(), Shape{});
        reader.convert(static_cast<int>(i), fields[i], out, 0, "input");
      }
      reader.check_count(fields.size(), "input");
    } catch (const Error&) {
    }
  }
}

/// Runs `decode`; what it refuses is fine.
inline void decoded(const std::function<Tensor()>& decode) {
  try {
    decode().array();
  } catch (const Error&) {
  }
}

/// The first bytes say what an image is: the ops that decode take other formats than theirs too.
inline void by_every_decoder(const Tensor& contents) {
  decoded([&] { return image::decode_jpeg(contents); });
  decoded([&] { return image::decode_png(contents, 3); });
  decoded([&] { return image::decode_gif(contents); });
  decoded([&] { return image::decode_bmp(contents); });
  for (const bool expand_animations : {true, false}) {
    for (const DType dtype : {uint8, uint16, float32}) {
      decoded([&] { return image::decode_image(contents, 0, dtype, expand_animations); });
    }
    decoded([&] { return image::decode_image(contents, 1, float32, expand_animations); });
  }
}

inline void jpeg(std::string_view bytes) {
  const Tensor contents{std::string(bytes)};
  by_every_decoder(contents);
  decoded([&] { return image::extract_jpeg_shape(contents); });
  decoded([&] {
    return image::decode_jpeg(contents, {.channels = 3,
                                         .ratio = 2,
                                         .fancy_upscaling = false,
                                         .try_recover_truncated = true,
                                         .dct_method = "INTEGER_ACCURATE"});
  });
  decoded([&] {
    return image::decode_and_crop_jpeg(contents, Tensor{3, 2, 5, 7}, {.acceptable_fraction = 0});
  });
}

inline void png(std::string_view bytes) {
  const Tensor contents{std::string(bytes)};
  by_every_decoder(contents);
  for (const std::int64_t channels : {0, 1, 4}) {
    decoded([&] { return image::decode_png(contents, channels); });
    decoded([&] { return image::decode_png(contents, channels, uint16); });
  }
}

inline void bmp(std::string_view bytes) {
  const Tensor contents{std::string(bytes)};
  by_every_decoder(contents);
  for (const std::int64_t channels : {0, 3, 4}) {
    decoded([&] { return image::decode_bmp(contents, channels); });
  }
}

inline void gif(std::string_view bytes) {
  const Tensor contents{std::string(bytes)};
  by_every_decoder(contents);
}

}  // namespace tandem::fuzz

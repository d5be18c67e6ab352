// What a pipeline cannot beat by much: libjpeg-turbo alone on all cores, and reading a file and
// looking at none of it.
#include <fcntl.h>
#include <stdio.h>  // what jpeglib.h needs
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <jpeglib.h>

#include "bench/common/pipelines.h"
#include "bench/common/serve.h"
#include "bench/common/timing.h"

namespace {

std::string folder() {
  const char* given = std::getenv("TANDEM_BENCH_DATA");
  if (given == nullptr) throw std::runtime_error("TANDEM_BENCH_DATA names no folder");
  return given;
}

template <class Pass>
bench::Answer rate(double units, Pass pass) {
  pass();
  bench::Answer answer;
  const double start = bench::now();
  double elapsed = 0;
  int passes = 0;
  do {
    pass();
    ++passes;
    elapsed = bench::now() - start;
  } while (elapsed < bench::kPipelineSeconds);
  answer.value = units * passes / elapsed;
  return answer;
}

// Decodes with both sides' defaults: the fast transform and smooth chroma.
void decode(const std::string& path, std::vector<unsigned char>& bytes,
            std::vector<unsigned char>& pixels) {
  bytes.resize(std::filesystem::file_size(path));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg.dct_method = JDCT_IFAST;
  jpeg_start_decompress(&jpeg);
  const std::size_t row = std::size_t{jpeg.output_width} * 3;
  pixels.resize(row * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    unsigned char* line = pixels.data() + row * jpeg.output_scanline;
    jpeg_read_scanlines(&jpeg, &line, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
}

bench::Answer jpeg() {
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder() + "/photos")) {
    paths.push_back(file.path());
  }
  if (paths.size() != bench::kImages) throw std::runtime_error("the photographs are not complete");
  return rate(bench::kImages, [&] {
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < bench::threads(); ++i) {
      threads.emplace_back([&] {
        std::vector<unsigned char> bytes, pixels;
        for (std::size_t at = next++; at < paths.size(); at = next++) {
          decode(paths[at], bytes, pixels);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

bench::Answer tfrecord() {
  const std::string path = folder() + "/records.tfrecord";
  std::vector<char> buffer(std::size_t{256} << 10);
  return rate(bench::kRecords * bench::kRecordBytes / 1e6, [&] {
    const int file = open(path.c_str(), O_RDONLY);
    if (file < 0) throw std::runtime_error("no file " + path);
    while (read(file, buffer.data(), buffer.size()) > 0) continue;
    close(file);
  });
}

}  // namespace

int main() { return bench::serve({{"jpeg", jpeg}, {"tfrecord", tfrecord}}, "libjpeg-turbo, read"); }

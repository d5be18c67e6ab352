#include "tandem/io/gfile.h"

#include <algorithm>
#include <span>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/file_systems.h"
#include "tandem/fs/paths.h"
#include "tandem/ops/host_ops.h"
#include "tandem/runtime/tensor.h"

namespace tandem::io::gfile {

struct GFile::State {
  std::string name;
  std::unique_ptr<fs::ReadableFile> in;
  std::unique_ptr<fs::WritableFile> out;
  std::uint64_t at = 0;
};

GFile::GFile(const String& name, const String& mode) : state_(new State{name, {}, {}}) {
  const char kind = mode.empty() ? ' ' : mode[0];
  fs::FileSystem& files = fs::file_system_of(name);
  if (kind == 'r') {
    state_->in = files.open(name);
  } else if (kind == 'w') {
    state_->out = files.create(name);
  } else if (kind == 'a') {
    state_->out = files.append_to(name);
  } else {
    throw InvalidArgumentError(
        cat("mode is not 'r' or 'w' or 'a': '", mode, "' for the file ", name));
  }
}

GFile::~GFile() = default;
GFile::GFile(GFile&&) noexcept = default;
GFile& GFile::operator=(GFile&&) noexcept = default;

GFile::State& GFile::reading() const {
  if (state_ && state_->in) return *state_;
  throw PermissionDeniedError("File isn't open for reading");
}
GFile::State& GFile::writing() const {
  if (state_ && state_->out) return *state_;
  throw PermissionDeniedError("File isn't open for writing");
}

std::string GFile::read(std::int64_t count) {
  State& s = reading();
  std::string out;
  constexpr std::size_t kPiece = 1 << 20;
  while (count < 0 || out.size() < static_cast<std::size_t>(count)) {
    const std::size_t begin = out.size();
    const std::size_t wanted =
        count < 0 ? kPiece : std::min(kPiece, static_cast<std::size_t>(count) - begin);
    out.resize(begin + wanted);
    const std::size_t got = s.in->read(s.at, std::span<char>(out).subspan(begin));
    s.at += got;
    out.resize(begin + got);
    if (got < wanted) break;
  }
  return out;
}

std::string GFile::readline() {
  State& s = reading();
  std::string line;
  for (;;) {
    char piece[4096];
    const std::size_t got = s.in->read(s.at, piece);
    const std::string_view found(piece, got);
    const std::size_t end = found.find('\n');
    const std::size_t taken = end == std::string_view::npos ? got : end + 1;
    line += found.substr(0, taken);
    s.at += taken;
    if (end != std::string_view::npos || got < sizeof piece) return line;
  }
}

std::vector<std::string> GFile::readlines() {
  std::vector<std::string> lines;
  for (std::string line = readline(); !line.empty(); line = readline())
    lines.push_back(std::move(line));
  return lines;
}

void GFile::write(std::string_view bytes) {
  State& s = writing();
  s.out->append(bytes);
  s.at += bytes.size();
}

void GFile::seek(std::int64_t offset) {
  if (offset < 0) throw InvalidArgumentError(cat("seek: ", offset, " lies before the file"));
  reading().at = static_cast<std::uint64_t>(offset);
}

std::int64_t GFile::position() const { return state_ ? static_cast<std::int64_t>(state_->at) : 0; }

std::int64_t GFile::size() const {
  if (!state_) throw FailedPreconditionError("This file is closed");
  return static_cast<std::int64_t>(stat(state_->name).size);
}

void GFile::flush() {
  if (state_ && state_->out) state_->out->flush();
}

void GFile::close() {
  const std::unique_ptr<State> state = std::move(state_);
  if (state && state->out) state->out->close();
}

bool exists(const String& path) { return fs::exists(path); }

bool isdir(const String& path) { return fs::exists(path) && stat(path).is_directory; }

std::vector<std::string> listdir(const String& path) { return fs::file_system_of(path).list(path); }

std::vector<std::string> glob(const String& pattern) {
  return matching_files(Tensor(pattern)).to_vector<std::string>();
}

void mkdir(const String& path) {
  if (fs::exists(path)) throw AlreadyExistsError(cat(path, "; File exists"));
  const std::string parent = fs::parent_path(path);
  if (!parent.empty() && fs::file_system_of(path).has_directories() && !isdir(parent))
    throw NotFoundError(cat(path, "; No such file or directory"));
  makedirs(path);
}

void makedirs(const String& path) { fs::file_system_of(path).make_directories(path); }

namespace {

void check_free(const std::string& path, bool overwrite) {
  if (!overwrite && fs::exists(path)) throw AlreadyExistsError(cat(path, "; file already exists"));
}

}  // namespace

void copy(const String& src, const String& dst, bool overwrite) {
  check_free(dst, overwrite);
  GFile in(src);
  const std::unique_ptr<fs::StagedFile> out = fs::file_system_of(dst).stage(dst);
  for (;;) {
    const std::string piece = in.read(8 << 20);
    if (piece.empty()) break;
    out->append(piece);
  }
  out->commit();
}

void rename(const String& src, const String& dst, bool overwrite) {
  check_free(dst, overwrite);
  fs::file_system_of(src).rename(src, dst);
}

void remove(const String& path) { fs::file_system_of(path).remove(path); }

void rmtree(const String& path) {
  fs::FileSystem& files = fs::file_system_of(path);
  for (const fs::DirectoryEntry& entry : files.list_entries(path)) {
    const std::string inside = fs::join_path(path, entry.name);
    // A link to a folder is removed itself.
    const bool is_link =
        files.follow_links(inside) != fs::join_path(files.follow_links(path), entry.name);
    if (entry.info.is_directory && !is_link) {
      rmtree(inside);
    } else {
      files.remove(inside);
    }
  }
  if (files.has_directories()) files.remove(path);
}

fs::FileInfo stat(const String& path) { return fs::file_system_of(path).stat(path); }

std::string join(const String& path, const String& name) {
  if (!name.empty() && name[0] == '/') return name;
  return fs::join_path(path, name);
}

std::vector<Walked> walk(const String& top, bool topdown) {
  std::vector<Walked> out;
  Walked here{top, {}, {}};
  for (const fs::DirectoryEntry& entry : fs::file_system_of(top).list_entries(top)) {
    auto& list = entry.info.is_directory ? std::get<1>(here) : std::get<2>(here);
    list.push_back(entry.name);
  }
  if (topdown) out.push_back(here);
  for (const std::string& folder : std::get<1>(here)) {
    for (Walked& below : walk(fs::join_path(top, folder), topdown)) out.push_back(std::move(below));
  }
  if (!topdown) out.push_back(std::move(here));
  return out;
}

}  // namespace tandem::io::gfile

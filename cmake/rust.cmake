# plumb_rust: the one Rust static library (rust/), built by cargo in release mode with panic=unwind.
# Cargo decides itself whether anything is stale, so the command always runs and is cheap when not.
find_program(CARGO cargo REQUIRED)
set(PLUMB_RUST_TARGET ${CMAKE_BINARY_DIR}/rust CACHE PATH "cargo target folder, to share between builds")
set(PLUMB_RUST_LIB ${PLUMB_RUST_TARGET}/release/libplumb_rust.a)
file(GLOB_RECURSE PLUMB_RUST_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/rust/src/*.rs)
add_custom_command(
  OUTPUT ${PLUMB_RUST_LIB}
  COMMAND ${CARGO} build --release --locked --manifest-path ${CMAKE_SOURCE_DIR}/rust/Cargo.toml
          --target-dir ${PLUMB_RUST_TARGET}
  DEPENDS ${PLUMB_RUST_SOURCES} ${CMAKE_SOURCE_DIR}/rust/Cargo.toml ${CMAKE_SOURCE_DIR}/rust/Cargo.lock
  USES_TERMINAL COMMENT "cargo build (tokenizers, minijinja, llguidance)")
add_custom_target(plumb_rust_build DEPENDS ${PLUMB_RUST_LIB})
add_library(plumb_rust INTERFACE)
target_include_directories(plumb_rust INTERFACE ${CMAKE_SOURCE_DIR}/rust/include)
target_link_libraries(plumb_rust INTERFACE ${PLUMB_RUST_LIB} ${CMAKE_DL_LIBS})
add_dependencies(plumb_rust plumb_rust_build)

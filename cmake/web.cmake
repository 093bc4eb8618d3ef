# The console in the binary. plumb_embed_web(target) adds to `target` a generated source with every
# file of web/ that a browser loads (api/web_files.h). Nothing is minified: what is served is what
# is read here. Run as a script (-P), this file writes that source: -DWEB=folder -DOUT=file.cc.
set(PLUMB_WEB_SUFFIXES .html .css .js .svg)

function(plumb_embed_web target)
  list(TRANSFORM PLUMB_WEB_SUFFIXES PREPEND ${CMAKE_SOURCE_DIR}/web/* OUTPUT_VARIABLE patterns)
  file(GLOB files CONFIGURE_DEPENDS ${patterns})
  set(out ${CMAKE_BINARY_DIR}/generated/web_files.cc)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DWEB=${CMAKE_SOURCE_DIR}/web -DOUT=${out}
            -P ${CMAKE_SOURCE_DIR}/cmake/web.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/web.cmake
    COMMENT "Embedding web/" VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()

function(plumb_web_type name out)
  get_filename_component(suffix ${name} LAST_EXT)
  if(suffix STREQUAL ".html")
    set(type "text/html; charset=utf-8")
  elseif(suffix STREQUAL ".css")
    set(type "text/css; charset=utf-8")
  elseif(suffix STREQUAL ".js")
    set(type "text/javascript; charset=utf-8")
  else()
    set(type "image/svg+xml")
  endif()
  set(${out} "${type}" PARENT_SCOPE)
endfunction()

# `path` as string literals of 32 bytes a line, every byte an escape.
function(plumb_web_literals path out)
  file(READ ${path} hex HEX)
  string(REGEX REPLACE "(..)" "\\\\x\\1" escaped "${hex}")
  string(LENGTH "${escaped}" length)
  set(lines "")
  foreach(start RANGE 0 ${length} 128)
    string(SUBSTRING "${escaped}" ${start} 128 line)
    string(APPEND lines "\n    \"${line}\"")
  endforeach()
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

function(plumb_write_web folder out)
  list(TRANSFORM PLUMB_WEB_SUFFIXES PREPEND ${folder}/* OUTPUT_VARIABLE patterns)
  file(GLOB files ${patterns})
  foreach(path ${files})
    get_filename_component(name ${path} NAME)
    list(APPEND names ${name})
  endforeach()
  list(SORT names COMPARE STRING)
  set(entries "")
  foreach(name ${names})
    plumb_web_type(${name} type)
    plumb_web_literals(${folder}/${name} literals)
    file(SHA256 ${folder}/${name} hash)
    string(SUBSTRING ${hash} 0 32 tag)
    file(SIZE ${folder}/${name} size)
    string(APPEND entries "    {\"${name}\", \"${type}\", \"\\\"${tag}\\\"\",\n"
                          "     std::string_view(${literals},\n     ${size})},\n")
  endforeach()
  file(WRITE ${out} "// Generated from web/ by cmake/web.cmake.\n#include \"api/web_files.h\"\n\n"
                    "namespace plumb::api {\n\nnamespace {\n\n"
                    "constexpr WebFile kFiles[] = {\n${entries}};\n\n}  // namespace\n\n"
                    "std::span<const WebFile> WebFiles() { return kFiles; }\n\n"
                    "}  // namespace plumb::api\n")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  plumb_write_web(${WEB} ${OUT})
endif()
